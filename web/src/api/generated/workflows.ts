/** Written by web/write_types.py from tidewheel.api; do not edit it. */

/** Describes something that is wrong or remarkable in a definition, and where. */
export type FindingFacts = {
  severity: string;
  code: string;
  message: string;
  hint: string;
  file: string | null;
  line: number | null;
  column: number | null;
};

/** Describes a parameter of a workflow; `provided_by`: stages whose output it may be. */
export type ParameterFacts = {
  name: string;
  required: boolean;
  stages: string[];
  provided_by: string[];
  default?: unknown;
};

/** Describes one version of a registered workflow. */
export type WorkflowFacts = {
  name: string;
  version: string;
  kind: string;
  definition: string;
  runnable: boolean;
  parameters: ParameterFacts[];
  registered_at: string;
  registered_by: string;
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
  findings: FindingFacts[];
  versions: string[];
  files: DefinitionFile[];
};

/** Describes a definition that was registered; `is_new`: it was not known before. */
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
  is_new: boolean;
};

/** Lists what was registered. */
export type RegisteredWorkflows = {
  workflows: RegisteredWorkflow[];
};

/** Says whether a version of a workflow can run with some parameters. */
export type WorkflowVerdict = {
  name: string;
  version: string;
  kind: string;
  definition: string;
  runnable: boolean;
  parameters: ParameterFacts[];
  registered_at: string;
  registered_by: string;
  file?: string;
  registrable: boolean;
  findings: FindingFacts[];
};

/** Names a value that an earlier stage hands on. */
export type ValueToCome = {
  name: string;
  stage: string;
};

/** Describes what a stage would execute; `is_whole`: it waits for no value to come. */
export type RenderedStageFacts = {
  parameters: Record<string, unknown>;
  args: unknown;
  compose?: unknown;
  command?: string[];
  script?: string;
  is_whole: boolean;
  to_come: ValueToCome[];
};

/** Describes what a run would execute, with every value in its place. */
export type RenderedWorkflow = {
  name: string;
  version: string;
  kind: string;
  text: string;
  stages: Record<string, RenderedStageFacts>;
};

/** Describes a task of a definition's graph. */
export type DefinitionTask = {
  id: string;
  name: string;
  point: string;
  family: string | null;
};

/** Describes who waits for whom; `certain`: the child cannot do without. */
export type DefinitionEdge = {
  parent: string;
  child: string;
  outputs: string[];
  certain: boolean;
  suicide: boolean;
};

/** Describes the graph of a version before any run. */
export type DefinitionGraph = {
  name: string;
  version: string;
  kind: string;
  workflow: string;
  points: string[];
  tasks: DefinitionTask[];
  edges: DefinitionEdge[];
  cut: boolean;
  findings: FindingFacts[];
};
