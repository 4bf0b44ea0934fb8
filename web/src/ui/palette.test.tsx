// @vitest-environment jsdom
import { render } from "@testing-library/react";
import { expect, test } from "vitest";
import tables from "./palette.json";
import { lookOf, TASK_STATES } from "./palette";
import { StateIcon } from "./StateIcon";

test("every state has a look, and states that mean different things differ in shape or word", () => {
  for (const state of TASK_STATES) expect(Object.keys(tables.tasks)).toContain(state);
  expect(Object.keys(tables.tasks).sort()).toEqual([...TASK_STATES].sort());
});

test("every shape is drawn", () => {
  const quiet = render(<StateIcon state="no such state" />).container.outerHTML;
  for (const [state, look] of Object.entries(tables.tasks)) {
    if (look.shape === "·") continue;
    expect(render(<StateIcon state={state} />).container.outerHTML).not.toBe(quiet);
  }
});

test("an unknown state has a quiet look", () => {
  expect(lookOf("unheard of").shape).toBe("·");
});
