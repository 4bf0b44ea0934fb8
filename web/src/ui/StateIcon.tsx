/** The shape of a state, drawn, so that it looks alike in every font. */
import type { CSSProperties, ReactNode } from "react";
import { inWords, lookOf, STATE_SAYS, type Kind } from "./palette";

const stroke = { fill: "none", stroke: "currentColor", strokeWidth: 1.8 } as const;
const line = { ...stroke, strokeWidth: 2.2, strokeLinecap: "round", strokeLinejoin: "round" } as const;
const ring = <circle cx="8" cy="8" r="5.6" {...stroke} />;

/** One drawing for each sign of the palette. */
const SHAPES: Record<string, ReactNode> = {
  "○": ring,
  "◔": <>{ring}<path d="M8 8V2.4A5.6 5.6 0 0 1 13.6 8Z" fill="currentColor" /></>,
  "◑": <>{ring}<path d="M8 2.4a5.6 5.6 0 0 1 0 11.2Z" fill="currentColor" /></>,
  "◕": <>{ring}<path d="M8 8H2.4A5.6 5.6 0 1 0 8 2.4Z" fill="currentColor" /></>,
  "◌": <circle cx="8" cy="8" r="5.6" {...stroke} strokeDasharray="2.2 2.2" />,
  "▶": <path d="M4.5 2.6 13 8l-8.5 5.4Z" fill="currentColor" />,
  "✔": <path d="M2.8 8.6 6.4 12l6.8-8" {...line} />,
  "✓": <path d="M4 8.6 6.6 11 12 5" {...line} strokeWidth={1.5} />,
  "✖": <path d="m3.8 3.8 8.4 8.4m0-8.4-8.4 8.4" {...line} />,
  "⊘": <>{ring}<path d="m4.2 11.8 7.6-7.6" {...stroke} /></>,
  "·": <circle cx="8" cy="8" r="2" fill="currentColor" />,
  "!": <><path d="M8 2.6v6.2" {...line} /><circle cx="8" cy="12.6" r="1.3" fill="currentColor" /></>,
  "‖": <path d="M5.6 3.4v9.2M10.4 3.4v9.2" {...line} />,
  "■": <rect x="3.6" y="3.6" width="8.8" height="8.8" rx="1" fill="currentColor" />,
};

export function stateStyle(state: string, kind: Kind = "tasks"): CSSProperties {
  return { "--state": lookOf(state, kind).colour } as CSSProperties;
}

export function StateIcon({ state, kind = "tasks", size = 16 }: { state: string; kind?: Kind; size?: number }) {
  const { shape } = lookOf(state, kind);
  return (
    <svg className="state-icon" style={stateStyle(state, kind)} width={size} height={size} viewBox="0 0 16 16" aria-hidden>
      {SHAPES[shape] ?? SHAPES["·"]}
    </svg>
  );
}

/** Shape and word; remarks beside it, quieter. */
export function StateWord({ state, remarks = [], kind = "tasks" }: { state: string; remarks?: readonly string[]; kind?: Kind }) {
  const says = [state, ...remarks].flatMap((one) => STATE_SAYS[one] ?? []).join(". ");
  return (
    <span className="state-word" style={stateStyle(state, kind)} {...(kind === "tasks" && says !== "" ? { title: says } : {})}>
      <StateIcon state={state} kind={kind} />
      <span>{kind === "blocks" ? inWords(state) : state}</span>
      {remarks.length > 0 && <span className="remarks">{remarks.join(", ")}</span>}
    </span>
  );
}
