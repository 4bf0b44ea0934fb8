/** What travels about the whole store. Written by web/write_types.py: do not edit. */
import type { Counts, Scope } from "./types";

export const FILTER_NAMES = ["queue", "worker", "tag", "name", "matching"] as const;
export const TASK_NAMES = ["limit_key", "tag"] as const;
export const SIGN_SECONDS_MAX = 10.0; // of a worker

export interface Resources {
  cpu: number;
  memory_bytes: number;
  gpu: number;
  labels: string[];
  nodes: number;
  exclusive: boolean;
  buffer_bytes: number;
  flavours: FlavouredNodes[];
}

export interface FlavouredNodes {
  flavour: string;
  nodes: number;
  idle: number;
}

export interface QueueLimit {
  key: string;
  concurrency_max: number | null;
  rate_max: number | null;
  rate_seconds: number;
}

export interface QueueFacts {
  queue: string;
  paused: boolean;
  aging: boolean;
  fair: boolean;
  fence_kill: boolean;
  lease_seconds: number;
  limits: QueueLimit[];
  counts: Counts;
  oldest_ready_seconds: number | null;
  failed: number;
  failed_more: boolean;
}

export interface TaskFailure {
  code: string;
  args?: unknown;
  description: string;
}

export interface StoredTask {
  id: string;
  seq: number;
  queue: string;
  name: string | null;
  tag: string | null;
  status: string;
  progress: number;
  attempt: number;
  failures: number;
  lapses: number;
  max_retries: number;
  max_lapses: number;
  retry: { delays?: number[]; [name: string]: number | number[] | undefined };
  priority: number;
  command: string | null;
  handler: string | null;
  spec?: unknown;
  spec_text?: string;
  resources: Resources;
  timeout_seconds: number | null;
  estimated_runtime_seconds: number | null;
  max_termination_seconds: number;
  unique_key: string | null;
  limit_key: string | null;
  armed: boolean;
  open_needs: number;
  withdrawn: boolean;
  owner: string | null;
  created_at: string;
  updated_at: string;
  due_at: string | null;
  deadline_at: string | null;
  errors: TaskFailure[];
  environment?: unknown;
}

export interface StoredAttempt {
  attempt: number;
  worker: string;
  claimed_at: string;
  started_at: string | null;
  ended_at: string | null;
  ended_by: string | null;
  exit_status: number | null;
  error: TaskFailure | null;
  metrics?: unknown;
  metrics_text?: string;
}

export interface Resubmitted {
  again_of: string;
  id: string | null;
  created: boolean;
  queue: string;
  name: string | null;
  needs: string[];
  children: string[];
  refused: string | null;
}

export interface WorkerFacts {
  id: string;
  name: string;
  host: string;
  boot_id: string;
  pid: number;
  started: number;
  queues: string[];
  slots: number;
  leases: number;
  capacity: Resources;
  registered_at: string;
  seen_at: string;
  stopped_at: string | null;
  trouble: string | null;
  commands: boolean;
  handlers: string[] | null;
  bare: boolean;
}

export interface Quantiles {
  count: number;
  mean: number;
  p50: number;
  p90: number;
  p99: number;
  max: number;
}

export interface Statistics {
  attempts: number;
  ended_by: Counts;
  success_rate: number | null;
  queue_seconds: Quantiles | null;
  run_seconds: Quantiles | null;
  memory_used_bytes: Quantiles | null;
  memory_used_of_asked: Quantiles | null;
  cpu_used_percent: Quantiles | null;
}

export interface AuditEntry {
  number: number;
  at: string | null;
  token: number | null;
  who: string;
  client: string;
  words: string;
  verb: string;
  target: string;
  status: number;
  correlation: string;
  sha256: string | null;
}

export interface AuditPage {
  entries: AuditEntry[];
  next: number | null;
}

export interface TokenFacts {
  number: number;
  kind: string;
  parent: number | null;
  name: string;
  scopes: Scope[];
  names: string[];
  created_at: string;
  expires_at: string | null;
  used_at: string | null;
  revoked_at: string | null;
  identity: SignedIn | null;
}

export interface SignedIn {
  person: string;
  source: string;
  groups: string[];
}
