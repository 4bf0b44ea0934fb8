/** Queues, and the tasks in them: filter, look, cancel, submit again, pause and drain. */
import { useInfiniteQuery } from "@tanstack/react-query";
import { useVirtualizer } from "@tanstack/react-virtual";
import { useEffect, useMemo, useRef, useState, type ReactNode } from "react";
import { useFollowing } from "../../api/follow";
import { post } from "../../api/http";
import { PAGE, RUN_QUEUE, tasksQuery, wishOf, type TaskWish } from "../../api/storeQueries";
import { useMay } from "../../api/session";
import { FILTER_NAMES, type QueueFacts, type StoredTask } from "../../api/storeTypes";
import { Confirm } from "../../ui/Confirm";
import { FilterField } from "../../ui/FilterField";
import { readFilter } from "../../ui/globs";
import { Button, Empty, Failure, Loading } from "../../ui/parts";
import { countText } from "../../ui/quantities";
import { ariaSort, directionOf, nextSort, SortHead, useTopAfter } from "../../ui/SortHead";
import { StateIcon, StateWord } from "../../ui/StateIcon";
import { Ago } from "../../ui/time";
import { useAddress } from "../useAddress";
import { isOver, jobOf, OPEN_STATUSES, STATUSES } from "./again";
import { Queues, useQueues } from "./Queues";
import { QueueSettings } from "./QueueSettings";
import { ResubmitDialog } from "./ResubmitDialog";
import { TaskAside } from "./TaskAside";
import { COLUMNS, inTaskOrder } from "./taskOrder";
import "./tasks.css";

const ROW_HEIGHT = 34;
const CANCEL_MAX = 1_000;
const LOADED_MAX = 2_000; // all of them are asked for again after each change
const TYPED_NAMES = FILTER_NAMES.filter((name) => name !== "queue" && name !== "matching").sort(); // a queue is chosen from a list

export function TasksPage() {
  useFollowing("task", ["store"]);
  const [search, change] = useAddress();
  const wish = wishOf(search);
  const { problem } = readFilter(wish.matching, STATUSES);
  const selected = search.task ?? null;
  const all = search.queues === "all";
  const { queues, left, error, refetch } = useQueues(all, wish.queue);
  const [naming, setNaming] = useState(false);
  const may = useMay("operate");
  return (
    <div className="tasks-page">
      <div className="page-head">
        <h1>Tasks &amp; queues</h1>
        {may && <Button look="quiet" className="page-end" title="Configure or pause a queue, also before its first task" onClick={() => setNaming(true)}>Configure a queue …</Button>}
        {naming && <QueueSettings queue={null} onClose={() => setNaming(false)} />}
        {(left > 0 || all) && <Button look="quiet" className={may ? "" : "page-end"} aria-pressed={all} onClick={() => change({ queues: all ? "" : "all" })}>Show queues of ended runs{left > 0 ? ` (${left})` : ""}</Button>}
      </div>
      <Queues queues={queues} error={error} retry={() => void refetch()} chosen={wish.queue} choose={(queue) => change({ queue })} />
      <Filters wish={wish} queues={queues} change={change} problem={problem} />
      <div className={selected === null ? "tasks-frame card" : "tasks-frame card with-aside"}>
        {problem !== "" ? <Empty title="The filter is not understood">{problem}</Empty> : <Tasks wish={wish} sort={search.sort ?? ""} setSort={(sort) => change({ sort })} selected={selected} select={(id) => change({ task: id })} clear={() => change({ ...wishOf({}), jobs: wish.jobs })} hasJobs={openJobs(queues ?? []) > 0} />}
        {selected !== null && <TaskAside key={selected} id={selected} close={() => change({ task: "" })} select={(id) => change({ task: id })} />}
      </div>
    </div>
  );
}

function Filters({ wish, queues, change, problem }: { wish: TaskWish; queues: readonly QueueFacts[] | undefined; change: (what: Record<string, string>) => void; problem: string }) {
  const chosen = wish.status.split(",").filter(Boolean);
  const toggle = (status: string) => change({ status: (chosen.includes(status) ? chosen.filter((one) => one !== status) : [...chosen, status]).join(",") });
  return (
    <div className="task-filters">
      <div className="state-chips" role="group" aria-label="Statuses">
        {STATUSES.map((status) => (
          <button key={status} type="button" className="chip state-chip" aria-pressed={chosen.includes(status)} onClick={() => toggle(status)}><StateIcon state={status} kind="statuses" size={13} />{status}</button>
        ))}
      </div>
      <select aria-label="Queue" value={wish.queue} onChange={(event) => change({ queue: event.target.value })}>
        <option value="">all queues</option>
        {[...new Set([...(queues ?? []).map((one) => one.queue), ...(wish.queue ? [wish.queue] : [])])].map((queue) => <option key={queue} value={queue}>{queue}</option>)}
      </select>
      {!wish.queue.startsWith(RUN_QUEUE) && <button type="button" className="chip state-chip" aria-pressed={wish.jobs === "1"} title="Also list jobs that belong to runs. To trigger, hold or kill such a job, open its run" onClick={() => change({ jobs: wish.jobs === "1" ? "" : "1" })}>Jobs of runs{queues && ` (${openJobs(queues)} open)`}</button>}
      <FilterField placeholder="Filter: img-*:failed" label="Filter tasks" value={wish.matching} change={(matching) => change({ matching })} problem={problem} pause={350} />
      {TYPED_NAMES.filter((field) => field !== "name" || wish.name !== "").map((field) => (
        <FilterField key={field} placeholder={`Exact ${field}`} label={`Exactly this ${field}`} value={wish[field]} change={(text) => change({ [field]: text })} pause={350} />
      ))}
    </div>
  );
}

const openJobs = (queues: readonly QueueFacts[]): number =>
  queues.filter((queue) => queue.queue.startsWith(RUN_QUEUE)).reduce((sum, queue) => sum + OPEN_STATUSES.reduce((count, status) => count + (queue.counts[status] ?? 0), 0), 0);

interface TasksProps {
  wish: TaskWish;
  sort: string;
  setSort: (sort: string) => void;
  selected: string | null;
  select: (id: string) => void;
  clear: () => void;
  hasJobs: boolean;
}

function Tasks({ wish, sort, setSort, selected, select, clear, hasJobs }: TasksProps) {
  const found = useInfiniteQuery(tasksQuery(wish));
  const [ticked, setTicked] = useState<ReadonlySet<string>>(new Set());
  const [operates, submits] = [useMay("operate"), useMay("submit")];
  const tasks = useMemo(() => found.data?.pages.flatMap((page) => page.tasks) ?? [], [found.data]);
  const filtered = Object.entries(wish).some(([name, value]) => value !== "" && name !== "jobs");
  const isShort = (found.data?.pages.at(-1)?.tasks.length ?? 0) < PAGE; // and may go on: a pattern looks at so many tasks a page
  const sorted = useMemo(() => inTaskOrder(tasks, sort), [tasks, sort]);
  const { hasNextPage, isError, isFetching, fetchNextPage } = found;
  const isFull = PAGE * (found.data?.pages.length ?? 0) >= LOADED_MAX;
  // What is sorted is what is loaded: so much of it as one can look through. A server that does not answer is not asked again and again.
  const loadsOn = sort !== "" && hasNextPage && !isShort && !isFull && !isError;
  useEffect(() => {
    if (loadsOn && !isFetching) void fetchNextPage();
  }, [loadsOn, isFetching, fetchNextPage]);
  const further = isShort && found.hasNextPage && <Button disabled={found.isFetchingNextPage} onClick={() => void found.fetchNextPage()}>{found.isFetchingNextPage ? "Looking …" : "Look at older tasks"}</Button>;
  if (found.data === undefined) return found.error === null ? <Loading what="tasks" /> : <Failure error={found.error} retry={() => void found.refetch()} />;
  if (tasks.length === 0) {
    if (filtered) return <Empty title={further ? "None of the newest tasks matches" : "No task matches"}>{further} <Button onClick={clear}>Show all</Button></Empty>;
    return wish.jobs !== "1" && found.data.pages[0]?.tasks.length === 0 && hasJobs ? <Empty title="All tasks here are jobs of runs">Jobs of runs are not shown here: press <b>Jobs of runs</b>, or open their run.</Empty> : <Empty title="There are no tasks">Submit one: <pre>tidewheel submit --server {location.origin} -- echo hello</pre></Empty>;
  }
  // Open ones can be cancelled, ended ones submitted again; jobs of runs are triggered in their runs.
  const takes = (task: StoredTask) => (isOver(task) ? submits && jobOf(task) === null : operates || submits);
  const tick = (some: readonly StoredTask[], on: boolean) => {
    const next = new Set(ticked);
    for (const { id } of some) if (on) next.add(id); else next.delete(id);
    setTicked(next);
  };
  const loadAndTick = async () => {
    let seen = found.data.pages;
    for (let more = found.hasNextPage; more && PAGE * seen.length < LOADED_MAX;) {
      const next = await found.fetchNextPage();
      if (next.isError) return;
      seen = next.data?.pages ?? seen;
      more = next.hasNextPage;
    }
    tick(seen.flatMap((page) => page.tasks).filter(takes), true);
  };
  const chosen = tasks.filter((task) => ticked.has(task.id));
  const older = found.hasNextPage && chosen.length > 0 && chosen.length === tasks.filter(takes).length && (
    <>
      <span className="muted">Older tasks may match, too.</span>
      {PAGE * found.data.pages.length < LOADED_MAX && <Button disabled={found.isFetchingNextPage} onClick={() => void loadAndTick()}>{found.isFetchingNextPage ? "Loading …" : "Select all that match"}</Button>}
    </>
  );
  return (
    <div className="tasks-list">
      <TickBar tasks={chosen} older={older} clear={() => setTicked(new Set())} />
      {sort !== "" && hasNextPage && <p className="look-further muted" role="status">Sorted: the newest {countText(tasks.length, "task")} that match{loadsOn ? "; loading more …" : ". Older tasks are not loaded: filter to see fewer."}</p>}
      <Rows tasks={sorted} sort={sort} setSort={setSort} ticked={ticked} takes={takes} tick={tick} selected={selected} select={select} more={sort === "" && found.hasNextPage && !found.isFetchingNextPage && !isShort ? () => void found.fetchNextPage() : null} />
      {further && <p className="look-further">{further}</p>}
    </div>
  );
}

/** `older`: what is said where all that is loaded is ticked, and more is not loaded. */
function TickBar({ tasks, older, clear }: { tasks: readonly StoredTask[]; older: ReactNode; clear: () => void }) {
  const [asking, setAsking] = useState<"cancel" | "again" | null>(null);
  if (tasks.length === 0 && asking === null) return null;
  const open = tasks.filter((task) => !isOver(task));
  const over = tasks.filter(isOver);
  const what = `Cancel ${open.length} task${open.length === 1 ? "" : "s"}`;
  const close = () => setAsking(null);
  return (
    <div className="tick-bar" role="group" aria-label="Actions on ticked tasks">
      <b>{tasks.length} selected</b>
      {older}
      {open.length > 0 && <Button className="risky" onClick={() => setAsking("cancel")}>{over.length > 0 ? `Cancel ${open.length} open` : "Cancel"}</Button>}
      {over.length > 0 && <Button onClick={() => setAsking("again")}>{open.length > 0 ? `Submit ${over.length} again` : "Submit again"}</Button>}
      <Button look="quiet" onClick={clear}>Clear selection</Button>
      {asking === "cancel" && (
        <Confirm
          title={what} button={what} danger stale={["store"]} onClose={close}
          act={async () => { await post("/tasks/cancel", { ids: open.slice(0, CANCEL_MAX).map((task) => task.id) }); clear(); }}
        >
          <p>Waiting tasks will not run, nor will tasks that need them. Running jobs are told to end.{open.length > CANCEL_MAX && ` Only the first ${CANCEL_MAX} are cancelled: select the others again afterwards.`}</p>
        </Confirm>
      )}
      {asking === "again" && <ResubmitDialog ids={over.map((task) => task.id)} onClose={close} onDone={clear} />}
    </div>
  );
}

interface RowsProps {
  tasks: readonly StoredTask[];
  sort: string;
  setSort: (sort: string) => void;
  ticked: ReadonlySet<string>;
  takes: (task: StoredTask) => boolean; // whether something can be done with it
  tick: (some: readonly StoredTask[], on: boolean) => void;
  selected: string | null;
  select: (id: string) => void;
  more: (() => void) | null;
}

function Rows({ tasks, sort, setSort, ticked, takes, tick, selected, select, more }: RowsProps) {
  const scroller = useRef<HTMLDivElement>(null);
  const takable = tasks.filter(takes);
  const all = takable.length > 0 && takable.every((task) => ticked.has(task.id));
  const virtual = useVirtualizer({ count: tasks.length, getScrollElement: () => scroller.current, estimateSize: () => ROW_HEIGHT, overscan: 12 });
  const items = virtual.getVirtualItems();
  const last = items.at(-1)?.index ?? 0;
  useEffect(() => {
    if (more !== null && last >= tasks.length - 20) more();
  }, [last, tasks.length, more]);
  useTopAfter(sort, virtual);
  return (
    <div className="task-rows" ref={scroller} role="table" aria-label="Tasks" aria-rowcount={more === null ? tasks.length : -1}>
      <div className="task-row head" role="row">
        <span role="columnheader">{takable.length > 0 ? <input type="checkbox" aria-label={`Select all ${takable.length} that are shown`} checked={all} onChange={() => tick(takable, !all)} /> : <span className="visually-hidden">Selected</span>}</span>
        {COLUMNS.map(({ id, title, begins }) => (
          <span key={id} role="columnheader" aria-sort={ariaSort(directionOf(sort, id))}>
            <SortHead sorted={directionOf(sort, id)} sort={() => setSort(nextSort(sort, id, begins))}>{title}</SortHead>
          </span>
        ))}
      </div>
      <div className="task-space" role="rowgroup" style={{ height: virtual.getTotalSize() }}>
        {items.map((item) => {
          const task = tasks[item.index];
          if (task === undefined) return null;
          return (
            <div
              key={task.id} role="row" tabIndex={0} className="task-row" aria-selected={task.id === selected} style={{ transform: `translateY(${item.start}px)` }}
              onClick={() => select(task.id)} onKeyDown={(event) => { if (event.key === "Enter") select(task.id); }}
            >
              <span role="cell" onClick={(event) => event.stopPropagation()}>{takes(task) && <input type="checkbox" aria-label={`Select ${task.id}`} checked={ticked.has(task.id)} onChange={(event) => tick([task], event.target.checked)} />}</span>
              <span role="cell"><StateWord state={task.status} kind="statuses" />{task.status === "running" && task.progress > 0 && <span className="muted"> {Math.round(100 * task.progress)} %</span>}</span>
              <span role="cell" title={task.id}><b>{task.name ?? task.id}</b> {task.name !== null && task.name !== task.id && <span className="faint">{task.id}</span>}</span>
              <span role="cell">{task.queue}</span>
              <span role="cell">{task.attempt || ""}{task.failures > 0 && <span className="bad-figure"> · {task.failures} failed</span>}</span>
              <span role="cell">{task.owner ?? ""}</span>
              <span role="cell"><Ago at={task.updated_at} /></span>
            </div>
          );
        })}
      </div>
    </div>
  );
}
