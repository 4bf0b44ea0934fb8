/** Views by link: everything that is chosen stands in the address; this browser keeps some with names. */
import { useState, type SyntheticEvent } from "react";
import { useNavigate } from "@tanstack/react-router";
import { copyText } from "../../ui/copy";
import { useMenu } from "../../ui/menus";
import { Button } from "../../ui/parts";
import { plain } from "../../ui/plain";
import { parseSearch } from "../search";
import { keepViews, savedViews, withView, type SavedView } from "./keep";

export function SavedViews() {
  const [views, setViews] = useState(savedViews);
  const [name, setName] = useState("");
  const [box, closeMenu] = useMenu();
  const navigate = useNavigate();
  const put = (next: SavedView[]) => {
    setViews(next);
    keepViews(next);
  };
  const save = (event: SyntheticEvent) => {
    event.preventDefault();
    if (name.trim() === "") return;
    put(withView(views, { name: name.trim(), search: location.search }));
    setName("");
  };
  const open = (view: SavedView) => {
    closeMenu();
    void navigate({ to: "/runs", search: parseSearch(view.search) });
  };
  return (
    <>
      <Button look="quiet" onClick={() => void copyText(location.href, "the link to this view")}>Copy link</Button>
      <details className="saved-views" ref={box}>
        <summary className="button quiet">Saved views</summary>
        <div className="saved-menu card">
          {views.length === 0 && <p className="muted">No views yet. Set filters, then save them here under a name. They are stored in this browser only.</p>}
          <ul>
            {views.map((view) => (
              <li key={view.name}>
                <button type="button" className="link" onClick={() => open(view)}>{plain(view.name)}</button>
                <Button look="quiet" aria-label={`Delete the view ${plain(view.name)}`} onClick={() => put(views.filter((one) => one !== view))}>Delete</Button>
              </li>
            ))}
          </ul>
          <form onSubmit={save}>
            <input className="input" aria-label="Name of the view" placeholder="Name of this view" maxLength={60} value={name} onChange={(event) => setName(event.target.value)} />
            <button type="submit" className="button">Save</button>
          </form>
        </div>
      </details>
    </>
  );
}
