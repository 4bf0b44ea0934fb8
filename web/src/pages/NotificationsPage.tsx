/** Whom tidewheel tells what: the rules as this server reads them, and a test of each. */
import { queryOptions, useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { get, post } from "../api/http";
import { useMay } from "../api/session";
import { useDeed } from "../ui/deed";
import { Button, Empty, Failure, Loading } from "../ui/parts";
import { plain } from "../ui/plain";
import { Ago, Due, durationText } from "../ui/time";
import "./workflows/workflows.css";

interface Rule {
  name: string;
  on: string[];
  workflow: string;
  task: string;
  every_seconds: number;
  after_seconds: number | null;
  kind: string;
  to: string;
}

interface Message {
  id: string;
  rule: string;
  event: string;
  run: string;
  tries: number;
  error: string;
}

interface Notifications {
  file: string;
  rules: Rule[];
  findings: string[];
  sender: string | null;
  waiting: (Message & { due_at: string })[];
  ended: (Message & { outcome: string; at: string })[];
}

interface Tests {
  tests: { rule: string; sent: boolean; error: string; id: string; text: string }[];
  findings: string[];
}

const EXAMPLE = `[[rule]]
name = "on-call"
on = ["stall", "failed"]
to = { mail = ["oncall@example.org"], from = "tidewheel@example.org" }`;

const notificationsQuery = queryOptions({
  queryKey: ["notifications"],
  queryFn: ({ signal }) => get<Notifications>("/notifications", signal),
  refetchInterval: 10_000,
  retry: false,
});

export function NotificationsPage() {
  const may = useMay("admin");
  const { data, error, refetch } = useQuery({ ...notificationsQuery, enabled: may });
  const testing = useDeed({ mutationFn: (rule: string | null) => post<Tests>("/notifications/test", { rule }), onSettled: () => refetch() });
  if (!may) return <Empty title="Only administrators see this">The rules contain names and addresses of people. Ask for a token with the scope admin.</Empty>;
  if (error !== null && data === undefined) return <Failure error={error} retry={() => void refetch()} />;
  if (data === undefined) return <Loading what="notifications" />;
  return (
    <div className="plain-page">
      <div className="page-head">
        <h1>Notifications</h1>
        {(data.rules.length > 0 || data.sender !== null) && <span className={data.sender === null ? "chip alarm" : "chip good"}>{data.sender === null ? "no scheduler sends notifications yet; if this does not change, start one: tidewheel scheduler" : `sent by ${plain(data.sender)}`}</span>}
        {data.rules.length > 1 && <Button className="to-end" disabled={testing.isPending} onClick={() => testing.mutate(null)}>Test all</Button>}
      </div>
      {data.findings.length > 0 && <div className="failure" role="alert"><p>The file has mistakes; rules with mistakes send nothing.</p><ul>{data.findings.map((one) => <li key={one}>{plain(one)}</li>)}</ul></div>}
      {data.rules.length === 0 && <Empty title="No notifications">Write rules into <code>{plain(data.file)}</code> on the server; changes to the file take effect without a restart. A rule for stalls and failures: <pre>{EXAMPLE}</pre> Read more in the documentation: <a href="/docs/">notifications</a>.</Empty>}
      {testing.error !== null && <Failure error={testing.error} />}
      <ul className="workflow-list">
        {data.rules.map((rule) => (
          <li key={rule.name} className="workflow-line card">
            <div className="workflow-name"><b>{plain(rule.name)}</b><span className="muted">{plain(rule.kind)} to {plain(rule.to)}</span></div>
            <div className="workflow-facts">on {rule.on.map((one) => <span key={one} className="chip">{one}</span>)}</div>
            <div className="muted">{scopeText(rule)}</div>
            <div className="workflow-when"><Button disabled={testing.isPending} aria-label={`Test ${rule.name}`} onClick={() => testing.mutate(rule.name)}>{testing.isPending && testing.variables === rule.name ? "Sending …" : "Test"}</Button></div>
            <Outcome tests={testing.data} rule={rule.name} />
          </li>
        ))}
      </ul>
      {data.rules.length > 0 && <p className="muted">These rules are in <code>{plain(data.file)}</code>. The file is read again when it changes.</p>}
      <div className="workflow-parts">
        <Messages title="Waiting to be sent" messages={data.waiting.map((one) => ({ ...one, when: <>{one.tries > 0 ? `tried ${one.tries === 1 ? "once" : `${one.tries} times`}, again` : "due"} <Due at={one.due_at} /></> }))} />
        <Messages title="Sent, given up or dropped" messages={data.ended.map((one) => ({ ...one, when: <>{one.outcome} <Ago at={one.at} /></> }))} />
      </div>
    </div>
  );
}

function scopeText(rule: Rule): string {
  const said = [
    rule.workflow === "*" || rule.workflow === "" ? "every workflow" : `workflow ${rule.workflow}`,
    rule.task === "*" || rule.task === "" ? "" : `task ${rule.task}`,
    rule.every_seconds > 0 ? `at most every ${durationText(rule.every_seconds)}` : "",
    rule.after_seconds === null ? "" : `after ${durationText(rule.after_seconds)}`,
  ];
  return plain(said.filter(Boolean).join(" · "));
}

function Outcome({ tests, rule }: { tests: Tests | undefined; rule: string }) {
  const found = tests?.tests.find((one) => one.rule === rule);
  if (found === undefined) return null;
  return <p role="status" className={found.sent ? "verdict good" : "verdict bad"}>{found.sent ? "✔ The test was sent." : `✖ ${plain(found.error)}`}</p>;
}

function Messages({ title, messages }: { title: string; messages: (Message & { when: ReactNode })[] }) {
  if (messages.length === 0) return null;
  return (
    <section className="card part" aria-label={title}>
      <h2>{title}</h2>
      <ul className="file-list">
        {messages.map((one) => (
          <li key={one.id}><span>{one.event} · {plain(one.run)} <span className="muted">({plain(one.rule)})</span></span><span className="muted">{one.when}</span>{one.error !== "" && <span className="wrong">{plain(one.error)}</span>}</li>
        ))}
      </ul>
    </section>
  );
}
