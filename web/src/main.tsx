/** Where the page begins. */
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { App } from "./App";
import { fetchParts } from "./upgrade";
import { applyTheme } from "./ui/theme";
import "./ui/base.css";

applyTheme();
fetchParts();
const root = document.getElementById("root");
if (root === null) throw new Error("index.html has no #root");
createRoot(root).render(<StrictMode><App /></StrictMode>);
