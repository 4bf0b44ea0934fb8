/** Nobody is known here: why, and how to get in again. */
import { useEffect, useState } from "react";
import { get } from "../api/http";
import { Button } from "../ui/parts";
import "./shell.css";

export function LoggedOut({ before }: { before: boolean }) {
  const [byName, setByName] = useState(false);
  useEffect(() => {
    // An older server does not know it: then nobody signs in by name.
    get<{ browser: boolean }>("/sign-in").then((ways) => setByName(ways.browser), () => undefined);
  }, []);
  return (
    <main className="logged-out">
      <div className="card">
        <h1>{before ? "Your session has ended" : "Log in to tidewheel"}</h1>
        <p>
          {before
            ? "A session ends after a fixed time (twelve hours after a login link), and earlier if its token expires or is revoked. Nothing was lost: all data is on the server."
            : "Open this page with a login link. The link is for a single use, and expires after five minutes."}
        </p>
        {byName && <p><a href="/login">Sign in by name</a></p>}
        <ol>
          <li>Open the link that <code>tidewheel up</code> printed, unless it has been used.</li>
          <li>
            Or make another link on the server&apos;s machine, and open it:
            <pre>tidewheel token link --server {location.origin}</pre>
          </li>
        </ol>
        <p className="muted">As soon as another tab is logged in, this tab continues.</p>
        <Button look="primary" onClick={() => location.reload()}>I have logged in</Button>
      </div>
    </main>
  );
}
