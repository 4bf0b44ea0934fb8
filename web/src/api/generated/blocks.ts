/** Written by web/write_types.py from tidewheel.api; do not edit it. */
import type { FindingFacts } from "./workflows";

/** Describes another block for which a block waits, and the `status` of that other block. */
export type BlockNeed = {
  block: string;
  condition: string;
  status: string;
  state: string;
};

/** Describes a processing block; `never`: it waits for something that can no longer happen. `status` is the status in the words of SIP, `run_status` the status of the run of the block. */
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
  run_status: string;
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

/** Describes a block after a request to abort it; `changed`: this request aborted it. */
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
  run_status: string;
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

/** Describes a stage of a block, or a buffer object that it waits for. `status` is the status in the words of SIP, `state` the state of the task of the stage. */
export type StageFacts = {
  id: string;
  stage: string | null;
  object: string | null;
  status: string;
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

/** Describes a processing block with each of its stages; `why`: what delays the whole block. */
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
  run_status: string;
  reason: string;
  driven: boolean;
  offered: boolean;
  waits: string[];
  never: boolean;
  needs: BlockNeed[];
  created_at: string;
  updated_at: string;
  ended_at: string | null;
  why: string[];
  stages: StageFacts[];
};

/** Describes something that happened to a block, or to a submission of one of its stages. */
export type BlockEvent = {
  at: string;
  stage: string | null;
  event: string;
  submit: number | null;
  text: string;
};

/** Lists what happened to a block and its stages, oldest first. */
export type BlockHistory = {
  id: string;
  status: string;
  events: BlockEvent[];
};

/** Lists processing blocks, newest first. */
export type BlockList = {
  blocks: BlockFacts[];
};

/** Describes a scheduling block instance in a list; `counts`: how many of its blocks have each status. */
export type SbiFacts = {
  id: string;
  status: string;
  counts: Record<string, number>;
  scheduling_block: string | null;
  subarray_id: string | null;
  scans: number;
  requested_at: string;
  requested_by: string;
};

/** Describes a scheduling block instance as it was requested, with the present state of its blocks. */
export type SbiDocument = {
  id: string;
  status: string;
  counts: Record<string, number>;
  scheduling_block: string | null;
  subarray_id: string | null;
  scans: number;
  requested_at: string;
  requested_by: string;
  request: unknown;
  blocks: BlockFacts[];
};

/** Describes a scheduling block instance that was requested. `is_new`: it was not known before; `dry_run`: nothing was stored. */
export type SbiAnswer = {
  id: string;
  status: string;
  counts: Record<string, number>;
  scheduling_block: string | null;
  subarray_id: string | null;
  scans: number;
  requested_at: string;
  requested_by: string;
  request: unknown;
  blocks: BlockFacts[];
  is_new: boolean;
  dry_run: boolean;
  findings: FindingFacts[];
};

/** Describes a block after a request to abort its scheduling block instance; `refused`: why the block could not be aborted. */
export type SbiAbortedBlock = {
  id: string;
  sbi: string | null;
  type: string | null;
  workflow: string;
  version: string | number | null;
  parameters: Record<string, unknown>;
  priority: number;
  run: number;
  status: string;
  run_status: string;
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
  refused: string | null;
};

/** Describes a scheduling block instance after a request to abort all of its blocks; `changed`: at least one of them had not ended before. */
export type AbortedSbi = {
  id: string;
  status: string;
  counts: Record<string, number>;
  scheduling_block: string | null;
  subarray_id: string | null;
  scans: number;
  requested_at: string;
  requested_by: string;
  changed: boolean;
  blocks: SbiAbortedBlock[];
};

/** Lists scheduling block instances, newest first. */
export type SbiList = {
  sbis: SbiFacts[];
};

/** Describes a buffer object, such as a data set, for which stages may wait. */
export type BufferObject = {
  name: string;
  facts: Record<string, unknown>;
  posted_at: string;
  posted_by: string;
};

/** Lists buffer objects, sorted by name. */
export type ObjectList = {
  objects: BufferObject[];
};
