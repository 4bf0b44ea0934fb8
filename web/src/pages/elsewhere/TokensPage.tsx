/** Tokens: who may speak to this server; made, shown once, revoked. For admins. */
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useState, type SubmitEvent } from "react";
import { post } from "../../api/http";
import { tokensQuery } from "../../api/storeQueries";
import { useMay } from "../../api/session";
import type { TokenFacts } from "../../api/storeTypes";
import { useDeed } from "../../ui/deed";
import { Confirm } from "../../ui/Confirm";
import { Dialog } from "../../ui/Dialog";
import { Button, Empty, Failure, Loading } from "../../ui/parts";
import { Ago, At, useNow } from "../../ui/time";
import { say } from "../../ui/toasts";
import { useAddress } from "../useAddress";
import { SCOPES, tokenBody, tokenWord, type TokenWish } from "./tokens";
import { Audit } from "./Audit";
import "./elsewhere.css";

const NEW: TokenWish = { name: "", scopes: ["read"], names: "", lasts: "" };

export function TokensPage() {
  const admin = useMay("admin");
  if (!admin) return <div className="plain-page"><div className="page-head"><h1>Tokens</h1></div><Empty title="Only admins see tokens">You can use the token that you have. Ask an admin for another token.</Empty></div>;
  return <Tokens />;
}

function Tokens() {
  const [search, change] = useAddress();
  const everything = search.all === "true";
  const { data: tokens, error, refetch } = useQuery(tokensQuery);
  const [making, setMaking] = useState(false);
  const [revoked, setRevoked] = useState<TokenFacts | null>(null);
  const now = useNow();
  if (error !== null && tokens === undefined) return <Failure error={error} retry={() => void refetch()} />;
  if (tokens === undefined) return <Loading what="tokens" />;
  const shown = tokens.filter((token) => everything || (token.kind === "bearer" && tokenWord(token, now) === "good"));
  return (
    <div className="plain-page">
      <div className="page-head">
        <h1>Tokens</h1>
        <span className="muted">{shown.length} of {tokens.length} shown</span>
        <Button look="quiet" className="page-end" aria-pressed={everything} onClick={() => change({ all: everything ? "" : "true" })}>Show sessions and ended tokens</Button>
        <Button look="primary" onClick={() => setMaking(true)}>New token</Button>
      </div>
      <div className="card table-card">
        <table className="plain-table">
          <thead><tr><th>Name</th><th>Kind</th><th>Scopes</th><th>Names</th><th>Created</th><th>Used</th><th>Valid until</th><th /></tr></thead>
          <tbody>
            {shown.map((token) => (
              <tr key={token.number} className={tokenWord(token, now) === "good" ? "" : "faint"}>
                <td><b>{token.name}</b> <span className="faint">{token.number}</span></td>
                <td>{token.kind}</td>
                <td>{token.scopes.join(", ")}</td>
                <td>{token.names.join(", ")}</td>
                <td><Ago at={token.created_at} /></td>
                <td>{token.used_at === null ? "never" : <Ago at={token.used_at} />}</td>
                <td>{tokenWord(token, now) === "revoked" ? "revoked" : token.expires_at === null ? "no end" : <At at={token.expires_at} />}</td>
                <td className="row-buttons">{tokenWord(token, now) === "good" && <Button look="risky" onClick={() => setRevoked(token)}>Revoke</Button>}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      <Audit />
      {making && <NewToken onClose={() => setMaking(false)} />}
      {revoked && (
        <Confirm title={`Revoke ${revoked.name}`} button="Revoke" danger stale={["store", "tokens"]} onClose={() => setRevoked(null)} act={() => post(`/tokens/${revoked.number}/revoke`)}>
          <p>After at most a second, the server refuses requests with token {revoked.number}, and with every session and link that was made with it. This cannot be undone.</p>
        </Confirm>
      )}
    </div>
  );
}

function NewToken({ onClose }: { onClose: () => void }) {
  const [wish, setWish] = useState(NEW);
  const queries = useQueryClient();
  const making = useDeed({
    mutationFn: () => post<{ token: string }>("/tokens", tokenBody(wish)),
    onSuccess: () => void queries.invalidateQueries({ queryKey: ["store", "tokens"] }),
  });
  const submit = (event: SubmitEvent) => {
    event.preventDefault();
    making.mutate();
  };
  if (making.data) return <Shown name={wish.name} token={making.data.token} onClose={onClose} />;
  const set = (field: Exclude<keyof TokenWish, "scopes">) => ({ className: "input", value: wish[field], onChange: (event: { target: { value: string } }) => setWish({ ...wish, [field]: event.target.value }) });
  return (
    <Dialog title="New token" onClose={onClose}>
      <h2>New token</h2>
      <form className="token-form" onSubmit={submit}>
        <label>Name <input required maxLength={256} data-focus placeholder="who or what uses it" {...set("name")} /></label>
        <fieldset>
          <legend>Scopes</legend>
          {SCOPES.map(([scope, says]) => (
            <label key={scope}>
              <input type="checkbox" checked={wish.scopes.includes(scope)} onChange={(event) => setWish({ ...wish, scopes: event.target.checked ? [...wish.scopes, scope] : wish.scopes.filter((one) => one !== scope) })} /> {scope} <span className="muted">{says}</span>
            </label>
          ))}
        </fieldset>
        <label>Names <input placeholder="separated by commas; team-a includes names such as team-a/nightly; * means every name" {...set("names")} /></label>
        <label>Valid for <input placeholder="12h or 30d; empty: until it is revoked" {...set("lasts")} /></label>
        {making.error !== null && <Failure error={making.error} />}
        <div className="dialog-foot">
          <Button onClick={onClose}>Cancel</Button>
          <Button look="primary" type="submit" disabled={making.isPending || wish.scopes.length === 0}>Create the token</Button>
        </div>
      </form>
    </Dialog>
  );
}

function Shown({ name, token, onClose }: { name: string; token: string; onClose: () => void }) {
  const copy = () => void navigator.clipboard.writeText(token).then(() => say("Copied"), () => say("The browser did not allow copying. Select the text and copy it.", true));
  return (
    <Dialog title={`Token ${name}`} onClose={onClose}>
      <h2>Token {name}</h2>
      <p>The token is shown only once: the server keeps only its hash.</p>
      <pre className="token-text" aria-label="The token">{token}</pre>
      <p className="muted">To use it, set <code>TIDEWHEEL_TOKEN</code> to this text, and <code>TIDEWHEEL_SERVER={location.origin}</code>.</p>
      <div className="dialog-foot"><Button onClick={copy}>Copy</Button><Button look="primary" onClick={onClose}>I have saved it</Button></div>
    </Dialog>
  );
}
