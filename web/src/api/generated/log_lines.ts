/** Written by web/write_types.py from tidewheel.api; do not edit it. */

/** Describes a line that was found: its number, where it begins in the file, its level (its own, or that of the line that it belongs to; null if there is none), and what a terminal would show of it. `cut`: that is only the part around what was found. */
export type LogHit = {
  line: number;
  offset: number;
  level: string | null;
  text: string;
  cut: boolean;
};

/** Holds what one step of a search in a file has found, in its order. `searched`: the search has reached this byte, of `size`. Send `cursor` to continue there; `done`: the end is reached, and the cursor is for lines that are written later. */
export type FileHits = {
  hits: LogHit[];
  lines: number;
  searched: number;
  size: number;
  cursor: string;
  done: boolean;
};

/** Holds what one step of a search in a log of a run, or of a job of it, has found. */
export type LogHits = {
  hits: LogHit[];
  lines: number;
  searched: number;
  size: number;
  cursor: string;
  done: boolean;
  run: string;
  id: string | null;
  submit: number | null;
  attempt: number | null;
};

/** Says at which byte a line of a log begins; if it is not `done`, how far the lines were counted; send `cursor` to continue there. For a line beyond the end, it is the last line. */
export type LogLinePlace = {
  run: string;
  id: string | null;
  submit: number | null;
  attempt: number | null;
  line: number;
  offset: number;
  size: number;
  cursor: string;
  done: boolean;
};

/** Describes a line that was found in a log of some job of a run. */
export type JobLogHit = {
  line: number;
  offset: number;
  level: string | null;
  text: string;
  cut: boolean;
  id: string;
  submit: number;
  attempt: number;
  file: string;
};

/** Holds what one step of a search in the logs of all jobs of a run has found, newest job first. `files` and `bytes` say how much this step has read, `missing` how many attempts have no log here that could be read, `at` which job comes next. `done`: nothing is left. */
export type JobLogHits = {
  run: string;
  hits: JobLogHit[];
  files: number;
  bytes: number;
  missing: number;
  at: string | null;
  cursor: string | null;
  done: boolean;
};

export const LEVELS = ["DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"] as const;
export const SAME_LEVELS = {"WARN": "WARNING", "FATAL": "CRITICAL"} as const;
export const PLAIN_RANK = 1 as const;
export const HEAD_LENGTH = 100 as const;
export const LEVEL_PATTERN = "^(?:[\\[(<]?[0-9].{0,60}?[\\s\\[(<|:-])?[\\[(<]?(DEBUG|INFO|WARN(?:ING)?|ERROR|CRITICAL|FATAL)(?![A-Za-z0-9_])" as const;
