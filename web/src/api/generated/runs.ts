/** Written by web/write_types.py from tidewheel.api; do not edit it. */
/* eslint-disable max-lines */

/** Names the process that drives a run. */
export type SchedulerProcess = {
  host: string;
  pid: number;
};

/** Counts tasks that did not run although their run completed: `lost` (a task that they need failed) and `skipped` (such as expired or removed). */
export type UndoneCounts = {
  lost: number;
  skipped: number;
};

/** Describes a run without its tasks. `driven`: a scheduler drives this run now; `offered`: any scheduler may take it; `mode`: `live`, or `simulation`, `dummy` or `skip` if its jobs are not real; `parent`: the run of which this run is a task. */
export type RunFacts = {
  number: number;
  name: string;
  workflow: string;
  status: string;
  reason: string;
  undone: UndoneCounts;
  driven: boolean;
  offered: boolean;
  scheduler: SchedulerProcess | null;
  folder: string;
  definition: string;
  queue: string;
  created_at: string;
  updated_at: string;
  ended_at: string | null;
  mode?: string;
  parent?: string | null;
};

/** Describes a run with its options; `kept`: how many commands wait until it resumes. */
export type RunWithOptions = {
  number: number;
  name: string;
  workflow: string;
  status: string;
  reason: string;
  undone: UndoneCounts;
  driven: boolean;
  offered: boolean;
  scheduler: SchedulerProcess | null;
  folder: string;
  definition: string;
  queue: string;
  created_at: string;
  updated_at: string;
  ended_at: string | null;
  mode?: string;
  parent?: string | null;
  options: Record<string, unknown>;
  kept?: number;
};

/** Holds a run with its options, without its tasks. */
export type RunCreated = {
  run: RunWithOptions;
};

/** Names the run that was deleted. */
export type RunDeleted = {
  deleted: string;
};

/** Describes a command as REST takes it: the other fields are sent to the request of this `verb`; for the verb `run`, that is the request `carry-on`. */
export type RunAction = {
  verb: string;
  ids?: string[];
  prerequisites?: string[];
  outputs?: string[];
  flow?: string;
  message?: string;
};

/** Says why something waits; `until`: when this clears on its own, if that is known. `needs_action`: an operator must act, because this does not clear on its own and the graph does not allow the task to end this way; `commands` would help. */
export type RunReason = {
  text: string;
  passes: boolean;
  needs_action: boolean;
  until: string | null;
  commands: string[];
  actions: RunAction[];
};

/** Says whether a view shows a run of stages: its tasks are named without a point, and there is only one flow. */
export type OfRun = {
  stages?: boolean;
};

/** Describes a task that keeps a run from continuing, or that needs action. */
export type RunCause = {
  id: string;
  state: string;
  remarks: string[];
  reasons: RunReason[];
};

/** Describes tasks that failed in the same way: `text` says so in one sentence. `name`: a glob or a family that matches these tasks; `end`: how they ended, such as `exit 3`; `error`: what the first of these tasks wrote last; `waiting`: how many tasks wait for them; `log`: the task whose log to read; `ids`: the ids of all these tasks. */
export type ErrorGroup = {
  text: string;
  count: number;
  name: string;
  state: string;
  end: string;
  error: string;
  waiting: number;
  log: string;
  ids: string[];
  commands: string[];
  actions: RunAction[];
};

/** Says since when a run is stalled; `until`: when its stall timer will stop the run, if it will. */
export type RunStall = {
  since: string;
  until: string | null;
};

/** Describes the progress of a run at one point; `done` counts the tasks that succeeded, were not taken, or were removed by a suicide trigger (`=> !task`). */
export type PointProgress = {
  point: string;
  tasks: number;
  done: number;
  counts: Record<string, number>;
};

/** Says where a run begins and ends, and how far it may go at present. */
export type RunBounds = {
  initial: string;
  start: string;
  final: string | null;
  stop: string | null;
  points_to_stop: number | null;
  stop_after: string | null;
  hold_after: string | null;
  oldest: string | null;
  runahead_limit: string | null;
};

/** Describes a flow of a run. */
export type FlowFacts = {
  flow: number;
  text: string;
  tasks: number;
  until: string | null;
  until_tasks: string[];
  stopped: boolean;
};

export type ActiveTask = {
  id: string;
  state: string;
  remarks: string[];
  flows: number[];
  submit: number;
  try: number;
  submitted_at: string | null;
  started_at: string | null;
  worker: string | null;
};

/** Describes a task that will not run; `chain` says which failure is the cause. */
export type LostTask = {
  id: string;
  flow: number;
  chain: string;
};

/** Describes a run: its progress point by point, its active, held and lost tasks, and the tasks that keep it from continuing. */
export type RunDocument = {
  stages?: boolean;
  run: RunWithOptions;
  waits: RunReason[];
  points: PointProgress[];
  counts: Record<string, number>;
  bounds: RunBounds;
  stall: RunStall | null;
  flows: FlowFacts[];
  active: ActiveTask[];
  held: string[];
  causes: RunCause[];
  groups: ErrorGroup[];
  lost: LostTask[];
};

/** Says how many points of a run have begun (`known`), and how many will follow (`to_come`). */
export type PointsSummary = {
  known: number;
  oldest: string | null;
  newest: string | null;
  final: string | null;
  to_come: number | null;
};

/** Describes the progress of a run; `tasks` counts the tasks of points that have begun, `total` the tasks of all points; null: the run has no end, or one too far to count. */
export type SummaryFacts = {
  stages?: boolean;
  batch: number;
  counts: Record<string, number>;
  tasks: number;
  total: number | null;
  done: number;
  points: PointsSummary;
  stall: RunStall | null;
  causes: RunCause[];
  causes_count: number;
  groups: ErrorGroup[];
  lost: number;
  held: number;
};

/** Describes the progress of a run, and what delays it. */
export type RunSummary = {
  stages?: boolean;
  batch: number;
  counts: Record<string, number>;
  tasks: number;
  total: number | null;
  done: number;
  points: PointsSummary;
  stall: RunStall | null;
  causes: RunCause[];
  causes_count: number;
  groups: ErrorGroup[];
  lost: number;
  held: number;
  run: RunWithOptions;
};

/** Describes the progress of a run in a list; `run` is only its name. */
export type ListedSummary = {
  stages?: boolean;
  batch: number;
  counts: Record<string, number>;
  tasks: number;
  total: number | null;
  done: number;
  points: PointsSummary;
  stall: RunStall | null;
  causes: RunCause[];
  causes_count: number;
  groups: ErrorGroup[];
  lost: number;
  held: number;
  run: string;
};

/** Describes a run in a list; `waits`: what keeps it from beginning. */
export type ListedRun = {
  number: number;
  name: string;
  workflow: string;
  status: string;
  reason: string;
  undone: UndoneCounts;
  driven: boolean;
  offered: boolean;
  scheduler: SchedulerProcess | null;
  folder: string;
  definition: string;
  queue: string;
  created_at: string;
  updated_at: string;
  ended_at: string | null;
  mode?: string;
  parent?: string | null;
  waits: string[];
  kept: number;
  summary?: ListedSummary | null;
};

/** Lists runs, newest first; `next` is the `before` of the next page. */
export type RunList = {
  runs: ListedRun[];
  next: number | null;
  summaries_left?: number;
};

/** Counts the tasks of a run at one point; `incomplete`: tasks that ended without the outputs that the graph requires, and need action. Where tasks have a `late offset`, `late` counts the tasks that are late, and `due` is when the next task will be late. */
export type GridCell = {
  point: string;
  counts: Record<string, number>;
  tasks: number;
  incomplete: number;
  late?: number;
  due?: string;
};

/** Names the first task of a run that needs action, and how it ended; `more`: how many more tasks need action. */
export type GridCause = {
  id: string;
  state: string;
  more: number;
};

/** Describes a run as a row of the grid. `since`: when the run stalled or ended with an error; `earliest`: the first point at which something is left to do; `cells`: one for each of the newest points, in the order of points; `late` and `due`: as in a cell, but for all points together. */
export type GridRun = {
  number: number;
  name: string;
  workflow: string;
  status: string;
  reason: string;
  undone: UndoneCounts;
  driven: boolean;
  offered: boolean;
  scheduler: SchedulerProcess | null;
  folder: string;
  definition: string;
  queue: string;
  created_at: string;
  updated_at: string;
  ended_at: string | null;
  mode?: string;
  parent?: string | null;
  since: string | null;
  stages: boolean;
  earliest: string | null;
  cause: GridCause | null;
  cells: GridCell[];
  late?: number;
  due?: string;
};

/** Shows the newest run of each workflow and all runs that have not ended; runs that need action come first. `counts`: how many runs have each status, without the filters by name and status; `left_out`: how many runs match but are not shown. */
export type RunGrid = {
  runs: GridRun[];
  counts: Record<string, number>;
  left_out: number;
};

/** Describes the state of a task of a run; events list tasks in the same form. */
export type PooledTask = {
  id: string;
  point: string;
  name: string;
  state: string;
  remarks: string[];
  flows: number[];
  submit: number;
  in_pool: boolean;
};

/** Describes a task of a run as a row, with the times of its last submission. */
export type TaskOfRun = {
  id: string;
  point: string;
  name: string;
  state: string;
  remarks: string[];
  flows: number[];
  submit: number;
  in_pool: boolean;
  queued_at: string | null;
  started_at: string | null;
  ended_at: string | null;
  exit_status: number | null;
  worker: string | null;
};

/** Describes what is the same for a task at all of its points. `branch`: the families that contain the task, outermost first; `shown`: the name that people read, in a run of stages. */
export type NodeFacts = {
  shown?: string;
  families: string[];
  branch: string[];
  title: string;
  rank: number;
};

/** Lists the tasks of a run; events after `cursor` keep the list up to date. */
export type RunTasks = {
  stages?: boolean;
  run: RunFacts;
  batch: number;
  cursor: string;
  points: string[];
  points_left_out: number;
  nodes: Record<string, NodeFacts>;
  tasks: TaskOfRun[];
};

/** Says how much of each resource an attempt asked for. */
export type AttemptAsked = {
  cpu: number;
  memory_bytes: number;
  gpu: number;
};

/** Says how much of each resource an attempt used; null: it was not measured. */
export type AttemptUsed = {
  memory_bytes: number | null;
  cpu_percent: number | null;
  gpu_percent: number | null;
  gpu_memory_bytes: number | null;
};

/** Describes an attempt with its times and resources. `worker` is null until a worker claims the attempt. */
export type AttemptOfRun = {
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
  asked: AttemptAsked;
  used: AttemptUsed;
};

/** Lists attempts at the jobs of a run, oldest first; `left_out`: attempts at older jobs may be missing. */
export type RunAttempts = {
  run: string;
  now: string;
  attempts: AttemptOfRun[];
  left_out: boolean;
};

/** Describes a task of the pool of a run in one row, for scripts. */
export type PoolRow = {
  id: string;
  point: string;
  name: string;
  state: string;
  held: boolean;
  queued: boolean;
  runahead: boolean;
  incomplete: boolean;
  blocked: boolean;
  flows: number[];
  submit: number;
};

/** Lists the tasks of the pool of a run, sorted by point and name. */
export type PoolDump = {
  run: string;
  status: string;
  reason: string;
  tasks: PoolRow[];
};

/** Describes a task that an id selects. */
export type SelectedTask = {
  id: string;
  state: string;
};

/** Lists the tasks that a command with these ids would affect. */
export type SelectedTasks = {
  run: string;
  tasks: SelectedTask[];
};

/** Describes a setting that a broadcast changed. */
export type BroadcastSetting = {
  point: string;
  namespace: string;
  setting: string;
  value: string | null;
};

/** Lists the settings of a run that were changed by broadcasts. */
export type RunBroadcasts = {
  run: string;
  broadcasts: BroadcastSetting[];
};

/** Says which state a task has, and which outputs it made. */
export type TaskProgress = {
  id: string;
  point: string;
  name: string;
  state: string;
  flows: number[];
  outputs: Record<string, string>;
};

/** Says which tasks of a run have reached a state, for xtriggers of other runs; `reason`: why no task could be read. */
export type WorkflowProgress = {
  run: string;
  reason: string;
  selector: string;
  tasks: TaskProgress[];
};

/** Describes the run whose state a snapshot holds. */
export type SnapshotRun = {
  run: string;
  number: number;
  workflow: string;
  status: string;
  reason: string;
  batch: number;
};

/** Describes a batch of a run; `tasks` is null if there are too many to list. */
export type BatchEvent = {
  run: string;
  number: number;
  workflow: string;
  status: string;
  reason: string;
  batch: number;
  at: string;
  changed?: number;
  tasks?: PooledTask[] | null;
};

export type TaskStepEvent = {
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
  exit_status: number | null;
  at: string;
};

/** Describes a task of a queue that has not ended. */
export type OpenTask = {
  id: string;
  queue: string;
  name: string | null;
  status: string;
  attempt: number;
  worker: string | null;
  progress: number;
};

/** Describes the state from which a client begins to follow events. `id` is the cursor from which events continue. */
export type EventSnapshot = {
  id: string;
  run: SnapshotRun | null;
  pool: PooledTask[];
  tasks: OpenTask[];
  cut: boolean;
};
