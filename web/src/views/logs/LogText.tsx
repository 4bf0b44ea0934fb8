/** One line of a log: its colours, and where a text stands in it. */
import { memo, type CSSProperties } from "react";
import { piecesOf, type Style } from "./ansi";
import { marked } from "./finding";

/** `start`: the colours that the line before has left. */
export const LogText = memo(function LogText({ text, start, texts, withCase }: { text: string; start: Style; texts: readonly string[]; withCase: boolean }) {
  const { pieces } = piecesOf(text, start);
  return (
    <>
      {marked(pieces, texts, withCase).map((mark, place) => (mark.found
        ? <mark key={place}>{mark.text}</mark>
        : <span key={place} className={classOf(mark.style)} style={styleOf(mark.style)}>{mark.text}</span>))}
      {pieces.length === 0 && "\u00a0"}
    </>
  );
});

function classOf(style: Style): string {
  const { ink, paper, bold, dim, italic, underline } = style;
  return Object.entries({ ink: ink !== null, paper: paper !== null, bold, dim, italic, underline }).filter(([, is]) => is).map(([name]) => `a-${name}`).join(" ");
}

/** A colour is a number or a name of ours, never a text of the log. */
function styleOf({ ink, paper }: Style): CSSProperties {
  return { ...(ink === null ? {} : { "--ink": ink }), ...(paper === null ? {} : { "--paper": paper }) } as CSSProperties;
}
