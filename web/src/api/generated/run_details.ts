/** Written by web/write_types.py from tidewheel.api; do not edit it. */
/* eslint-disable max-lines */
import type { NodeFacts, RunFacts, RunReason, RunStall, SelectedTask, TaskOfRun, UndoneCounts } from "./runs";
import type { FileDiff, FindingFacts } from "./workflows";

/** Describes a member of a family that a task waits for. */
export type FamilyMember = {
  id: string;
  made: boolean;
  state: string;
};

/** Gives the state of an output that an arrow names. */
export type AtomFacts = {
  output: string;
  state: "true" | "open" | "lost" | "not taken";
  by_hand: boolean;
  before_start: boolean;
};

/** Describes one part of a prerequisite: an output, and the task that makes it. */
export type PrerequisiteAtom = {
  output: string;
  state: "true" | "open" | "lost" | "not taken";
  by_hand: boolean;
  before_start: boolean;
  id: string;
  text: string;
  parent: string;
  members: FamilyMember[];
};

/** Describes a prerequisite of a task: what one arrow of the graph makes it wait for. */
export type PrerequisiteArrow = {
  text: string;
  satisfied: boolean;
  by_hand: boolean;
  atoms: PrerequisiteAtom[];
};

/** Describes an xtrigger or a timer of a task. */
export type XtriggerFacts = {
  label: string;
  call: string;
  satisfied: boolean;
  by_hand: boolean;
  at: string | null;
};

/** Describes an output of a task: whether it was made, in which flows and by whom. */
export type OutputFacts = {
  output: string;
  message: string;
  made: boolean;
  by_hand: boolean;
  by: string;
  at: string | null;
  flows: number[];
  required: boolean;
};

/** Says why a task is over in a flow: it ended, could no longer run, or was removed. */
export type VerdictFacts = {
  flow: number;
  verdict: string;
  text: string;
};

/** Describes a variable that a job gets from its definition. `broadcast`: a broadcast has set it. */
export type JobVariable = {
  name: string;
  value: string;
  broadcast: boolean;
};

/** Describes an attempt at a submission, with its logs on this host. */
export type AttemptOfTask = {
  attempt: number;
  worker: string;
  claimed_at: string | null;
  started_at: string | null;
  ended_at: string | null;
  ended_by: string | null;
  exit_status: number | null;
  error: string | null;
  logs: string[];
};

/** Describes a message that a job sent. */
export type JobMessage = {
  at: string;
  output: string | null;
  text: string;
};

/** Describes a submission with its attempts, messages and the values that it returned. */
export type SubmissionOfTask = {
  submit: number;
  task: string;
  status: string;
  submitted_at: string;
  started_at: string | null;
  ended_at: string | null;
  exit_status: number | null;
  error: string | null;
  worker: string | null;
  folder: string;
  attempts: AttemptOfTask[];
  messages: JobMessage[];
  values: unknown;
};

export type TaskFacts = {
  run: string;
  id: string;
  name: string;
  point: string;
  title: string;
  description: string;
  families: string[];
  state: string;
  remarks: string[];
  flows: number[];
  in_pool: boolean;
  submits: number;
  try: number;
  completion: string;
  children: string[];
};

/** Describes the run of another workflow that a task started instead of a job. */
export type NestedRun = {
  submit: number;
  run: string;
  workflow: string;
  status: string;
  reason: string;
};

/** Shows one task of a run in full; `why`: why it does not run, or that it is running. `values`: the values that later tasks get, returned by the task or set by an operator; null: there are no values. */
export type TaskDocument = {
  run: string;
  id: string;
  name: string;
  point: string;
  title: string;
  description: string;
  families: string[];
  state: string;
  remarks: string[];
  flows: number[];
  in_pool: boolean;
  submits: number;
  try: number;
  completion: string;
  children: string[];
  values: unknown;
  prerequisites: PrerequisiteArrow[];
  suicide: PrerequisiteArrow[];
  xtriggers: XtriggerFacts[];
  outputs: OutputFacts[];
  verdicts: VerdictFacts[];
  environment: JobVariable[];
  submissions: SubmissionOfTask[];
  nested?: NestedRun[];
  why: RunReason[];
};

/** Shows some tasks of a run in full. */
export type TaskDocuments = {
  stages?: boolean;
  tasks: TaskDocument[];
};

/** Says why one task does not run. */
export type TaskReasons = {
  run: string;
  id: string;
  state: string;
  remarks: string[];
  flows: number[];
  reasons: RunReason[];
};

/** Says of some tasks why they do not run. */
export type WhyDocument = {
  stages?: boolean;
  tasks: TaskReasons[];
};

/** Says when an attempt began, and when and how it ended. */
export type AttemptInTree = {
  attempt: number;
  worker: string | null;
  started_at: string | null;
  ended_at: string | null;
  ended_by: string | null;
  exit_status: number | null;
};

/** Says when a submission of a task began, and when and how it ended; its attempts are listed if there were several. */
export type SubmissionInTree = {
  submit: number;
  status: string;
  submitted_at: string;
  started_at: string | null;
  ended_at: string | null;
  exit_status: number | null;
  attempts: AttemptInTree[];
};

/** Describes a family (`children`) or a task (everything else) in the tree of a run. `shown`: the name that people read, in a run of stages. */
export type TreeBranch = {
  name: string;
  shown?: string;
  family: boolean;
  children?: TreeBranch[];
  id?: string;
  state?: string;
  remarks?: string[];
  flows?: number[];
  distance?: number | null;
  submissions?: SubmissionInTree[];
};

/** Describes a point of the tree of a run: how many tasks it has, how many of them are done, and (`children`) the tasks that are known so far. */
export type TreePoint = {
  point: string;
  tasks: number;
  done: number;
  counts: Record<string, number>;
  children: TreeBranch[];
};

/** Describes a run as a tree; `left_out` counts points that are older than those shown. */
export type RunTree = {
  stages?: boolean;
  run: string;
  status: string;
  undone: UndoneCounts;
  mode?: string;
  stall: RunStall | null;
  left_out: number;
  points: TreePoint[];
};

/** Describes a task of a graph; `distance` counts the edges between the task and the tasks around which the graph was asked for. */
export type GraphTask = {
  id: string;
  point: string;
  name: string;
  state: string;
  remarks: string[];
  flows: number[];
  submit: number;
  in_pool: boolean;
  distance: number;
};

/** Describes an edge by the task where it ends, and whether it is satisfied. */
export type EdgeFacts = {
  to: string;
  output: string;
  state: "true" | "open" | "lost" | "not taken";
  by_hand: boolean;
  suicide: boolean;
  arrow: number;
  alternative: boolean;
};

/** Describes an edge between two tasks, or between a task and a group. */
export type GraphEdge = {
  from: string;
  to: string;
  output: string;
  state: "true" | "open" | "lost" | "not taken";
  by_hand: boolean;
  suicide: boolean;
  arrow: number;
  alternative: boolean;
};

/** Describes a large family on the left of an arrow, drawn as one group. */
export type GraphGroup = {
  id: string;
  point: string;
  family: string;
  output: string;
  every: boolean;
  members: number;
  made: number;
};

/** Describes the graph of a run around some tasks. */
export type RunGraph = {
  stages?: boolean;
  run: string;
  status: string;
  batch: number;
  points: string[];
  families: Record<string, string[]>;
  tasks: GraphTask[];
  groups: GraphGroup[];
  edges: GraphEdge[];
  cut: boolean;
};

export type GoneEdge = {
  from: string;
  to: string;
  output: string;
  suicide: boolean;
};

/** Names what is no longer in a graph. */
export type GraphGone = {
  tasks: string[];
  groups: string[];
  edges: GoneEdge[];
};

/** Holds the whole graph, or only what has changed since its version `since`. */
export type GraphAnswer = {
  stages?: boolean;
  run: string;
  status: string;
  batch: number;
  points: string[];
  families: Record<string, string[]>;
  tasks: GraphTask[];
  groups: GraphGroup[];
  edges: GraphEdge[];
  cut: boolean;
  version: string;
  since: string | null;
  gone: GraphGone;
};

/** Describes a command that was given to a run. */
export type CommandRecord = {
  number: number;
  at: string;
  who: string;
  verb: string;
  arguments: Record<string, unknown>;
  answered_at: string | null;
  refused: string | null;
  answer: unknown;
};

/** Lists the commands that were given to a run, newest first. */
export type RunHistory = {
  run: string;
  commands: CommandRecord[];
};

/** Describes a submission of a task: its times, its last attempt, and how it ended. */
export type SubmissionOfRun = {
  id: string;
  submit: number;
  attempt: number;
  task: string;
  status: string;
  queued_at: string;
  started_at: string | null;
  ended_at: string | null;
  exit_status: number | null;
  error: string | null;
  worker: string | null;
};

/** Lists the submissions of a run, newest first. */
export type RunSubmissions = {
  run: string;
  submissions: SubmissionOfRun[];
};

/** Describes one submission on the critical path. */
export type CriticalStep = {
  id: string;
  submit: number;
  task: string;
  status: string;
  queued_at: string;
  started_at: string | null;
  ended_at: string | null;
};

/** Describes the chain of submissions that made a run take as long as it took. */
export type CriticalPath = {
  run: string;
  seconds: number | null;
  steps: CriticalStep[];
};

/** Describes a task as it was after a batch of changes; `submit` is null for a task that left the pool. */
export type TaskInBatch = {
  id: string;
  state: string;
  remarks: string[];
  flows: number[];
  in_pool: boolean;
  submit: number | null;
};

/** Describes a batch, the changes that a scheduler stored together; `status` is the status of the run, if it changed. */
export type BatchFacts = {
  batch: number;
  at: string;
  status: string | null;
  tasks: TaskInBatch[];
  left_pool: string[];
};

/** Lists batches of changes, oldest first; send `next` as `after` to get the next page. */
export type RunChanges = {
  run: string;
  batches: BatchFacts[];
  next: number | null;
};

/** Says how a task changed in a batch of changes. */
export type TaskChange = {
  id: string;
  before: string;
  state: string;
  remarks: string[];
  made: string[];
};

/** Describes a run as it was after a batch, the changes that a scheduler stored together. */
export type RunPast = {
  stages?: boolean;
  run: RunFacts;
  batch: number;
  points: string[];
  points_left_out: number;
  nodes: Record<string, NodeFacts>;
  tasks: TaskOfRun[];
  at: string;
  status: string;
  last_batch: number;
  changed: TaskChange[];
  around: BatchFacts[];
  commands: CommandRecord[];
};

/** Holds the end of a log; `cut`: the log has more text before it. */
export type LogContent = {
  path: string;
  files: string[];
  text: string;
  cut: boolean;
};

/** Shows the end of a log; `id`, `submit` and `attempt` are null for the log of the run. */
export type LogDocument = {
  path: string;
  files: string[];
  text: string;
  cut: boolean;
  run: string;
  id: string | null;
  submit: number | null;
  attempt: number | null;
};

/** Describes the status of a run before a command and after it. */
export type StatusChange = {
  before: string;
  after: string;
};

/** Says how a command would change a task at once. */
export type TriedChange = {
  id: string;
  flows: number[];
  before: string;
  after: string;
  in_pool: boolean;
  made: string[];
};

/** Describes a task that would run after the command; `after` names the tasks that would have to end before it. */
export type TriedRun = {
  id: string;
  submit: number;
  flows: number[];
  triggered: boolean;
  after: string[];
};

/** Describes a task that would wait after the command. */
export type TriedWait = {
  id: string;
  reasons: RunReason[];
};

/** Says what a command would do at once. */
export type DoneAtOnce = {
  run: string;
  verb: string;
  tasks: SelectedTask[];
  status: StatusChange;
  changes: TriedChange[];
  killed: string[];
  polled: string[];
  comes_back: string[];
};

/** Describes a definition that a run had; `who` is the person who reloaded it, or, for the first definition, the person who began the run, if known. */
export type RunVersion = {
  version: number;
  definition: string;
  at: string;
  who: string;
};

/** Lists the definitions that a run had, the present one first, and the findings in the present one; a finding whose file is "" is about the text that the templates yielded. */
export type RunVersions = {
  run: string;
  kind: string;
  versions: RunVersion[];
  findings: FindingFacts[];
};

/** Says in which files two definitions of a run differ, from `version` to `against`; the path "" is the text that the templates yielded. */
export type RunDiff = {
  run: string;
  version: number;
  against: number;
  files: FileDiff[];
};

/** Says what a command would do, and what would run then if every job succeeded; `diff` is how a `reload` would change the definition, and null for every other command; `notices` are sentences about immediate effects on the run, apart from its status. */
export type DryRun = {
  run: string;
  verb: string;
  tasks: SelectedTask[];
  status: StatusChange;
  changes: TriedChange[];
  killed: string[];
  polled: string[];
  comes_back: string[];
  stages?: boolean;
  runs: TriedRun[];
  waits: TriedWait[];
  notices: string[];
  cut: boolean;
  diff?: FileDiff[] | null;
};
