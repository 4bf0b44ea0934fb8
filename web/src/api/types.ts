/** What travels, as the server says it (generated), and what the page makes of it. */
import type { GraphAnswer, GraphEdge } from "./generated/run_details";
import type { RunAction, RunFacts, SummaryFacts } from "./generated/runs";

export type Scope = "read" | "submit" | "operate" | "worker" | "admin";

export interface Session {
  name: string;
  kind: string;
  scopes: Scope[];
  queues: string[];
  workflows: string[];
  csrf: string | null;
}

export type { AttemptOfRun as RunAttempt, BatchEvent as RunEvent, ErrorGroup, GridCell, GridRun, ListedRun, NodeFacts, PooledTask as TaskWords, RunAttempts, RunCause as Cause, RunFacts, RunList, RunReason as Reason, RunTasks as TaskRows, RunWithOptions, TaskOfRun as TaskRow, TaskStepEvent as TaskEvent } from "./generated/runs";
export type { AttemptOfTask as Attempt, BatchFacts as PastBatch, CommandRecord as PastCommand, CriticalPath, DryRun, GraphAnswer, GraphEdge, GraphGroup, OutputFacts, PrerequisiteArrow as Arrow, PrerequisiteAtom as Atom, RunPast as PastDocument, SubmissionOfTask as Submission, TaskChange as PastChange, TaskDocument } from "./generated/run_details";

export type Counts = Record<string, number>;
export type EdgeState = GraphEdge["state"];

/** A command as REST takes it: its verb and its fields. */
export interface Action extends RunAction {
  [field: string]: unknown;
}

/** How far a run is; in a list of runs as well as by itself. */
export interface RunSummary extends SummaryFacts {
  run: RunFacts;
}

/** The graph as the page keeps it: what a server has told of it, put together. */
export type GraphDocument = Omit<GraphAnswer, "since" | "gone">;
