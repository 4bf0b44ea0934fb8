/** Written by web/write_types.py from tidewheel.api; do not edit it. */

/** Describes a mistake in a definition, or a remark about it, and where it is. */
export type FindingFacts = {
  severity: string;
  code: string;
  message: string;
  hint: string;
  file: string | null;
  line: number | null;
  column: number | null;
};

/** Describes a parameter of a workflow; `provided_by`: stages that may return its value. */
export type ParameterFacts = {
  name: string;
  required: boolean;
  stages: string[];
  provided_by: string[];
  default?: unknown;
};

/** Says where the files of a workflow were fetched from, according to the person who registered it. */
export type SourceFacts = {
  url: string;
  ref: string;
  commit: string;
  folder: string;
  sha256: string;
};

/** Describes one version of a registered workflow; `source` is null for files that came from a folder. */
export type WorkflowFacts = {
  name: string;
  version: string;
  kind: string;
  definition: string;
  runnable: boolean;
  parameters: ParameterFacts[];
  registered_at: string;
  registered_by: string;
  source: SourceFacts | null;
};

/** Lists registered workflows by name, the highest version first. */
export type WorkflowList = {
  workflows: WorkflowFacts[];
};

/** Describes a file of a definition. */
export type DefinitionFile = {
  path: string;
  size: number;
  executable: boolean;
};

/** Describes one version of a workflow with its findings and files. */
export type WorkflowDocument = {
  name: string;
  version: string;
  kind: string;
  definition: string;
  runnable: boolean;
  parameters: ParameterFacts[];
  registered_at: string;
  registered_by: string;
  source: SourceFacts | null;
  findings: FindingFacts[];
  versions: string[];
  files: DefinitionFile[];
};

/** Describes a definition that was registered; `is_new`: it was not registered before. */
export type RegisteredWorkflow = {
  name: string;
  version: string;
  kind: string;
  file: string;
  definition: string;
  registrable: boolean;
  runnable: boolean;
  findings: FindingFacts[];
  parameters: ParameterFacts[];
  source: SourceFacts | null;
  is_new: boolean;
};

/** Lists the definitions that were registered. */
export type RegisteredWorkflows = {
  workflows: RegisteredWorkflow[];
};

/** Says whether a version of a workflow can run with the given parameters. */
export type WorkflowVerdict = {
  name: string;
  version: string;
  kind: string;
  definition: string;
  runnable: boolean;
  parameters: ParameterFacts[];
  registered_at: string;
  registered_by: string;
  source: SourceFacts | null;
  file?: string;
  registrable: boolean;
  findings: FindingFacts[];
};

/** Names a value that an earlier stage will return. */
export type ValueToCome = {
  name: string;
  stage: string;
};

/** Describes what a stage would execute; `is_whole`: all values are known, none comes from an earlier stage. */
export type RenderedStageFacts = {
  parameters: Record<string, unknown>;
  args: unknown;
  compose?: unknown;
  command?: string[];
  script?: string;
  is_whole: boolean;
  to_come: ValueToCome[];
};

/** Describes what a run would execute, with the values of the parameters inserted. */
export type RenderedWorkflow = {
  name: string;
  version: string;
  kind: string;
  text: string;
  stages: Record<string, RenderedStageFacts>;
};

/** Describes a resource that a stage asks for, under the keys of the definition; `value`: a number of cores for cpu, a number of bytes for memory and buffer. */
export type ResourceFacts = {
  type: string;
  number?: number;
  flavour?: string;
  exclusive?: boolean;
  value?: number;
  label?: string;
};

/** Describes what a stage waits for: another stage, or a buffer object. */
export type DependencyFacts = {
  type: string;
  value: string;
  condition: string;
};

/** Describes the list over which a stage is mapped: the stage runs once for each element. A known list has `count` and its first `items`; otherwise it is the value of `parameter`, or the `output` of a `stage`. If there is a `stage` without an `output`, this stage has the same elements as that stage. */
export type ElementsFacts = {
  max: number;
  count?: number;
  items?: unknown[];
  parameter?: string;
  stage?: string;
  output?: string;
};

/** Describes a parameter that a stage declares: its `value` if that is known, or the stage that will return it (`provided_by`); `required`: a request must give its value. */
export type StageParameter = {
  name: string;
  required: boolean;
  provided_by: string | null;
  value?: unknown;
};

/** Holds a line of a comparison; `kind` is same, added or removed, `old` and `new` are the numbers of the line in the old and in the new text. */
export type DiffLine = {
  kind: string;
  old: number | null;
  new: number | null;
  text: string;
};

/** Says how a file differs: added, removed or changed; `hunks` is null if the file is not text, or too long; `executable` is there if the file became executable, or no longer is. */
export type FileDiff = {
  path: string;
  change: string;
  hunks: DiffLine[][] | null;
  executable?: boolean;
};

/** Says in which files two versions of a workflow differ, from `version` to `against`. */
export type WorkflowDiff = {
  name: string;
  version: string;
  against: string;
  files: FileDiff[];
};

/** Describes a file of a stage; `text` is null if the file is not text, or too long. */
export type StageFile = {
  path: string;
  size: number;
  executable: boolean;
  text: string | null;
};

/** Describes a stage of a definition. `when` is false if it is switched off; `executes` is the path of its compose file, command or script; `allow`: what its worker must allow; `compose_2`: keys of its compose file that only docker compose 2 knows; `externals`: what must exist on the engine before it runs, in words. */
export type StageDocument = {
  id: string;
  version: string;
  type: string;
  timeout_seconds: number | null;
  resources: ResourceFacts[];
  dependencies: DependencyFacts[];
  when: boolean;
  for_each: ElementsFacts | null;
  until: string[];
  executes: string | null;
  allow: string[];
  compose_2: string[];
  externals: string[];
  parameters: StageParameter[];
  outputs: string[];
  files: StageFile[];
};

/** Describes each stage of a version, as it would be in a run with the given parameters. */
export type WorkflowStages = {
  name: string;
  version: string;
  kind: string;
  stages: StageDocument[];
  findings: FindingFacts[];
};

/** Describes a task of a definition's graph. */
export type DefinitionTask = {
  id: string;
  name: string;
  point: string;
  family: string | null;
};

/** Says that the task `child` waits for the task `parent`; `certain`: the child cannot run before the parent has made one of the `outputs`. */
export type DefinitionEdge = {
  parent: string;
  child: string;
  outputs: string[];
  certain: boolean;
  suicide: boolean;
};

/** Says how many `points` a run with the given options would have, and how often each of its `tasks` would run. If the run has no end, `last` is null and nothing is counted; `cut`: there is more than was counted. */
export type RunRange = {
  first: string;
  last: string | null;
  points: number;
  tasks: Record<string, number>;
  cut: boolean;
};

/** Describes the graph of a version before any run; `range` is only there if the request has `options`. */
export type DefinitionGraph = {
  name: string;
  version: string;
  kind: string;
  workflow: string;
  points: string[];
  tasks: DefinitionTask[];
  edges: DefinitionEdge[];
  cut: boolean;
  range?: RunRange;
  findings: FindingFacts[];
};
