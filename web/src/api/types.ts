/** What travels: the documents of the REST API, in its own words (docs/server.md, docs/json.md). */

export type Scope = "read" | "submit" | "operate" | "worker" | "admin";

export interface Session {
  name: string;
  kind: string;
  scopes: Scope[];
  queues: string[];
  workflows: string[];
  csrf: string | null;
}

export interface RunFacts {
  number: number;
  name: string;
  workflow: string;
  status: string;
  reason: string;
  driven: boolean;
  offered: boolean;
  scheduler: { host: string; pid: number } | null;
  folder: string;
  queue: string;
  created_at: string;
  updated_at: string;
  ended_at: string | null;
  options?: Record<string, unknown>;
  waits?: string[]; // what keeps it from beginning
}

export type Counts = Record<string, number>;

/** A command as REST takes it: its verb and its fields. */
export interface Action {
  verb: string;
  ids?: string[];
  flow?: string;
  [field: string]: unknown;
}

export interface Reason {
  text: string;
  passes: boolean;
  until: string | null; // when it passes, where that is known
  commands: string[];
  actions: Action[];
}

export interface Cause {
  id: string;
  state: string;
  remarks: string[];
  reasons: Reason[];
}

export interface RunSummary {
  run: RunFacts;
  batch: number;
  counts: Counts;
  /** Of the points that have begun. */
  tasks: number;
  /** Of all points up to the end; null: there is none, or it is far. */
  total: number | null;
  done: number;
  points: {
    known: number;
    oldest: string | null;
    newest: string | null;
    final: string | null;
    to_come: number | null;
  };
  stall: { since: string; until: string | null } | null; // until: when its stall timer ends
  causes: Cause[];
  causes_count: number;
  lost: number;
  held: number;
}

/** Where a task of a run is: the form in which events tell it, too. */
export interface TaskWords {
  id: string;
  point: string;
  name: string;
  state: string;
  remarks: string[];
  flows: number[];
  submit: number;
  in_pool: boolean;
}

export interface TaskRow extends TaskWords {
  queued_at: string | null;
  started_at: string | null;
  ended_at: string | null;
  exit_status: number | null;
  worker: string | null;
}

export interface NodeFacts {
  families: string[];
  branch: string[]; // the families in which it is drawn, the outermost first
  title: string;
  rank: number;
}

export interface TaskRows {
  run: RunFacts;
  batch: number;
  cursor: string;
  points: string[];
  points_left_out: number;
  nodes: Record<string, NodeFacts>;
  tasks: TaskRow[];
}

export type EdgeState = "true" | "open" | "lost" | "not taken";

export interface GraphEdge {
  from: string;
  to: string;
  output: string;
  state: EdgeState;
  by_hand: boolean;
  suicide: boolean;
  arrow: number;
  alternative: boolean;
}

export interface GraphGroup {
  id: string;
  point: string;
  family: string;
  output: string;
  every: boolean;
  members: number;
  made: number;
}

export interface GraphDocument {
  run: string;
  status: string;
  batch: number;
  /** Of what it says: the same graph has the same. */
  version: string;
  points: string[];
  families: Record<string, string[]>;
  tasks: (TaskWords & { distance: number })[];
  groups: GraphGroup[];
  edges: GraphEdge[];
  cut: boolean;
}

/** The whole graph, or what differs from the version `since`. */
export interface GraphAnswer extends GraphDocument {
  since: string | null;
  gone: { tasks: string[]; groups: string[]; edges: Pick<GraphEdge, "from" | "to" | "output" | "suicide">[] };
}

export interface Atom {
  id: string;
  text: string;
  parent: string;
  output: string;
  state: EdgeState;
  by_hand: boolean;
  before_start: boolean;
  members: { id: string; made: boolean; state: string }[];
}

export interface Arrow {
  text: string;
  satisfied: boolean;
  by_hand: boolean;
  atoms: Atom[];
}

export interface OutputFacts {
  output: string;
  message: string;
  made: boolean;
  by_hand: boolean;
  by: string;
  at: string | null;
  flows: number[];
  required: boolean;
}

export interface Attempt {
  attempt: number;
  worker: string;
  claimed_at: string | null;
  started_at: string | null;
  ended_at: string | null;
  ended_by: string | null;
  exit_status: number | null;
  error: string | null;
  logs: string[];
}

export interface Submission {
  submit: number;
  task: string;
  status: string;
  submitted_at: string | null;
  started_at: string | null;
  ended_at: string | null;
  exit_status: number | null;
  error: string | null;
  worker: string | null;
  attempts: Attempt[];
  messages: { at: string | null; output: string | null; text: string }[];
}

/** An attempt with its times and resources; one that nobody has claimed yet has no worker. */
export interface RunAttempt {
  id: string;
  point: string;
  name: string;
  submit: number;
  attempt: number;
  task: string;
  worker: string | null;
  queued_at: string;
  claimed_at: string | null;
  started_at: string | null;
  ended_at: string | null;
  ended_by: string | null;
  exit_status: number | null;
  asked: { cpu: number; memory_bytes: number; gpu: number };
  used: { memory_bytes: number | null; cpu_percent: number | null; gpu_percent: number | null; gpu_memory_bytes: number | null };
}

export interface RunAttempts {
  run: string;
  now: string;
  attempts: RunAttempt[];
  left_out: boolean;
}

export interface CriticalPath {
  run: string;
  seconds: number | null;
  steps: { id: string; submit: number; task: string; status: string; queued_at: string; started_at: string | null; ended_at: string | null }[];
}

export interface TaskDocument {
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
  prerequisites: Arrow[];
  suicide: Arrow[];
  xtriggers: { label: string; call: string; satisfied: boolean; by_hand: boolean; at: string | null }[];
  outputs: OutputFacts[];
  verdicts: { flow: number; verdict: string; text: string }[];
  environment: { name: string; value: string; broadcast: boolean }[];
  submissions: Submission[];
  why: Reason[];
}

export interface DryRun {
  run: string;
  verb: string;
  tasks: { id: string; state: string }[];
  status: { before: string; after: string };
  changes: {
    id: string;
    flows: number[];
    before: string;
    after: string;
    in_pool: boolean;
    made: string[];
  }[];
  killed: string[];
  polled: string[];
  comes_back: string[];
  runs: { id: string; submit: number; flows: number[]; triggered: boolean; after: string[] }[];
  waits: { id: string; reasons: Reason[] }[];
  notices: string[];
  cut: boolean;
}

export interface RunEvent {
  run: string;
  number: number;
  workflow: string;
  status: string;
  reason: string;
  batch: number;
  at: string;
  changed?: number;
  tasks?: TaskWords[] | null;
}

export interface TaskEvent {
  id: string;
  queue: string;
  run: string | null;
  point: string | null;
  name: string | null;
  submit: number | null;
  signal: string | null;
  from: string | null;
  to: string;
  attempt: number;
  worker: string | null;
  progress: number | null;
  exit_status: number | null; // of the attempt that this step ended
  at: string;
}
