/** Written by web/write_types.py from tidewheel.api; do not edit it. */

/** Describes a line that was found: its number, where it begins in the file, its level, and its text as a terminal would show it. A line without a level has the `level` of the last line before it that has one; null if there is none. `cut`: `text` is only the part of the line around what was found. */
export type LogHit = {
  line: number;
  offset: number;
  level: string | null;
  text: string;
  cut: boolean;
};

/** Holds what one step of a search in a file has found, in the order of the file. `searched`: how many of the `size` bytes were searched. Send `cursor` to continue there; `done`: the end is reached, and the cursor is for lines that are written later. */
export type FileHits = {
  hits: LogHit[];
  lines: number;
  searched: number;
  size: number;
  cursor: string;
  done: boolean;
};

/** Holds what one step of a search in the log of a run, or of one of its jobs, has found. */
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

/** Says at which byte (`offset`) a line of a log begins. If `done` is false, the line was not reached yet: `line` and `offset` say how far the lines were counted; send `cursor` to continue from there. If the log ends before the line or the byte that was asked for, the answer is about its last line. */
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

/** Describes a line that was found in the log of a job of a run. */
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

/** Holds what one step of a search in the logs of all jobs of a run has found, newest job first. `files` and `bytes` say how much this step has read, `missing` how many attempts have no log here that could be read, `at` which job comes next. `done`: all logs were searched. */
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
