/** A page that is being built: what tells the same meanwhile. */
import { Empty } from "../ui/parts";

export function Soon({ title, command }: { title: string; command: string }) {
  return <Empty title={title} icon="◔">This page is being built. The command line tells the same: <pre>{command}</pre></Empty>;
}
