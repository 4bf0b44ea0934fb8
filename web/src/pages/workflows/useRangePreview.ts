/** What a run with the points of the form would go through, looked up before anything runs. */
import { useQuery } from "@tanstack/react-query";
import { useEffect, useMemo, type Dispatch, type SetStateAction } from "react";
import { definitionGraphQuery, type Given, type WorkflowDocument } from "../../api/registry";
import { useSettled } from "../../ui/settled";

const SETTLED_MS = 350;

/** Once it is known, the graph is drawn with it (`onPreview`); points that are refused leave the graph as it was. */
export function useRangePreview({ name, version }: WorkflowDocument, wanted: Given, onPreview: Dispatch<SetStateAction<Given>>) {
  const written = JSON.stringify(wanted);
  const settled = useSettled(written, SETTLED_MS);
  const given = useMemo(() => JSON.parse(settled) as Given, [settled]);
  const asks = given.points !== null;
  const { data, error, isPlaceholderData } = useQuery({ ...definitionGraphQuery(name, version, "", "", given), enabled: asks });
  const isKnown = asks && error === null && data !== undefined && !isPlaceholderData;
  useEffect(() => {
    if (isKnown) onPreview(given);
    else if (!asks) onPreview((old) => (old.points === null ? old : { ...old, points: null }));
  }, [isKnown, asks, given, onPreview]);
  const isPending = written !== settled || (asks && !isKnown && error === null);
  return { range: isKnown ? (data.range ?? null) : null, error: asks ? error : null, isPending };
}
