/** Flows told apart by colour and by pattern; the first flow, which every run has, needs no mark. */
import "./flow.css";

const COLOURS = 5;
const PATTERNS = 4;

/** Flow 2 on; the colours and the patterns have no common round, so twenty flows differ. */
export function flowClass(flow: number): string {
  const place = Math.max(0, flow - 2);
  return `flow-c${place % COLOURS} flow-p${place % PATTERNS}`;
}

export const laterFlows = (flows: readonly number[]): number[] => flows.filter((flow) => flow > 1).sort((a, b) => a - b);

export function FlowMark({ flow, word = false }: { flow: number; word?: boolean }) {
  return <span className={`flow-mark ${flowClass(flow)}`} role="img" aria-label={`flow ${flow}`} title={`flow ${flow}`}><i />{word ? `flow ${flow}` : flow}</span>;
}

export function FlowMarks({ flows }: { flows: readonly number[] }) {
  const later = laterFlows(flows);
  if (later.length === 0) return null;
  return <span className="flow-marks">{flows.length > later.length && <span className="flow-one" title="flow 1">1</span>}{later.map((flow) => <FlowMark key={flow} flow={flow} />)}</span>;
}
