/** Written by web/write_types.py from tidewheel.api; do not edit it. */
import type { FindingFacts } from "./workflows";

/** Describes what a block waits for. */
export type BlockNeed = {
  block: string;
  condition: string;
  status: string;
  state: string;
};

/** Describes a processing block; `never`: it waits for what cannot happen any more. */
export type BlockFacts = {
  id: string;
  sbi: string | null;
  type: string | null;
  workflow: string;
  version: string | number | null;
  parameters: Record<string, unknown>;
  priority: number;
  run: number;
  status: string;
  reason: string;
  driven: boolean;
  offered: boolean;
  waits: string[];
  never: boolean;
  needs: BlockNeed[];
  created_at: string;
  updated_at: string;
  ended_at: string | null;
};

/** Describes a block after it was asked to end; `changed`: there was something to end. */
export type AbortedBlock = {
  id: string;
  sbi: string | null;
  type: string | null;
  workflow: string;
  version: string | number | null;
  parameters: Record<string, unknown>;
  priority: number;
  run: number;
  status: string;
  reason: string;
  driven: boolean;
  offered: boolean;
  waits: string[];
  never: boolean;
  needs: BlockNeed[];
  created_at: string;
  updated_at: string;
  ended_at: string | null;
  changed: boolean;
};

/** Describes something that happened to a submission of a stage. */
export type StageEvent = {
  event: string;
  submit: number;
  at: string;
  error: string | null;
};

/** Describes a stage of a block, or a buffer object that it waits for. */
export type StageFacts = {
  id: string;
  stage: string | null;
  object: string | null;
  state: string;
  remarks: string[];
  submit: number;
  submitted_at: string | null;
  started_at: string | null;
  ended_at: string | null;
  exit_status: number | null;
  error: string | null;
  worker: string | null;
  values: unknown;
  why: string[];
  events: StageEvent[];
};

/** Describes a block with each of its stages. */
export type BlockDocument = {
  id: string;
  sbi: string | null;
  type: string | null;
  workflow: string;
  version: string | number | null;
  parameters: Record<string, unknown>;
  priority: number;
  run: number;
  status: string;
  reason: string;
  driven: boolean;
  offered: boolean;
  waits: string[];
  never: boolean;
  needs: BlockNeed[];
  created_at: string;
  updated_at: string;
  ended_at: string | null;
  stages: StageFacts[];
};

/** Lists processing blocks, newest first. */
export type BlockList = {
  blocks: BlockFacts[];
};

/** Describes a scheduling block instance as one row. */
export type SbiFacts = {
  id: string;
  requested_at: string;
  requested_by: string;
};

/** Describes an instance as it was asked for, with its blocks as they are. */
export type SbiDocument = {
  id: string;
  requested_at: string;
  requested_by: string;
  request: unknown;
  blocks: BlockFacts[];
};

/** Describes an instance that was asked for; `is_new`: it was not known before. */
export type SbiAnswer = {
  id: string;
  requested_at: string;
  requested_by: string;
  request: unknown;
  blocks: BlockFacts[];
  is_new: boolean;
  findings: FindingFacts[];
};

/** Lists scheduling block instances, newest first. */
export type SbiList = {
  sbis: SbiFacts[];
};

/** Describes an object that stages may wait for. */
export type BufferObject = {
  name: string;
  facts: Record<string, unknown>;
  posted_at: string;
  posted_by: string;
};

/** Lists objects that are there, by name. */
export type ObjectList = {
  objects: BufferObject[];
};
