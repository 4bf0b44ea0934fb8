/** Written by web/write_types.py from tidewheel.api; do not edit it. */
export const LEVELS = ["DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"] as const;
export const SAME_LEVELS = {"WARN": "WARNING", "FATAL": "CRITICAL"} as const;
export const PLAIN_RANK = 1 as const;
export const HEAD_LENGTH = 100 as const;
export const LEVEL_PATTERN = "^(?:[\\[(<]?[0-9].{0,60}?[\\s\\[(<|:-])?[\\[(<]?(DEBUG|INFO|WARN(?:ING)?|ERROR|CRITICAL|FATAL)(?![A-Za-z0-9_])" as const;
