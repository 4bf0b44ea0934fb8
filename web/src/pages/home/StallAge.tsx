/** For how long a run has stood still, from the store: a restart of the server does not change it. */
import { Ago } from "../../ui/time";

export function StallAge({ status, since }: { status: string; since: string }) {
  return <span className="stall-age">{status === "error" ? "failed" : status} <Ago at={since} />, at <time dateTime={since}>{since.slice(11, 16)}Z</time></span>;
}
