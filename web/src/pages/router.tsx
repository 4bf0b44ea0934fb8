/** Every address of the page; the server knows them as PAGES (server/resources/index_page.py). */
import { createRootRoute, createRoute, createRouter, lazyRouteComponent, redirect } from "@tanstack/react-router";
import { part } from "../upgrade";
import { Shell } from "../shell/Shell";
import { Empty } from "../ui/parts";
import { parseSearch, stringifySearch, type Search } from "./search";
import { HomePage } from "./home/HomePage";

const anySearch = (search: Record<string, unknown>): Search =>
  Object.fromEntries(Object.entries(search).map(([name, value]) => [name, String(value)]));

const root = createRootRoute({
  component: Shell,
  validateSearch: anySearch,
  notFoundComponent: () => <Empty page title="There is no such page">Use the navigation above.</Empty>,
});

const routes = [
  createRoute({
    getParentRoute: () => root,
    path: "/",
    beforeLoad: () => {
      // The router takes what is thrown here as where to go.
      throw redirect({ to: "/runs" }); // eslint-disable-line @typescript-eslint/only-throw-error
    },
  }),
  createRoute({ getParentRoute: () => root, path: "/runs", component: HomePage }),
  createRoute({
    getParentRoute: () => root,
    path: "/runs/$run",
    component: lazyRouteComponent(part(() => import("./run/RunPage")), "RunPage"),
  }),
  createRoute({ getParentRoute: () => root, path: "/workflows", component: lazyRouteComponent(part(() => import("./workflows/WorkflowsPage")), "WorkflowsPage") }),
  createRoute({ getParentRoute: () => root, path: "/workflows/$workflow", component: lazyRouteComponent(part(() => import("./workflows/WorkflowPage")), "HighestVersionPage") }),
  createRoute({ getParentRoute: () => root, path: "/workflows/$workflow/$version", component: lazyRouteComponent(part(() => import("./workflows/WorkflowPage")), "WorkflowPage") }),
  createRoute({ getParentRoute: () => root, path: "/definition", component: lazyRouteComponent(part(() => import("./workflows/RunDefinitionPage")), "RunDefinitionPage") }),
  createRoute({ getParentRoute: () => root, path: "/requests", component: lazyRouteComponent(part(() => import("./requests/RequestsPage")), "RequestsPage") }),
  createRoute({ getParentRoute: () => root, path: "/notifications", component: lazyRouteComponent(part(() => import("./NotificationsPage")), "NotificationsPage") }),
  createRoute({ getParentRoute: () => root, path: "/tasks", component: lazyRouteComponent(part(() => import("./tasks/TasksPage")), "TasksPage") }),
  createRoute({ getParentRoute: () => root, path: "/workers", component: lazyRouteComponent(part(() => import("./elsewhere/WorkersPage")), "WorkersPage") }),
  createRoute({ getParentRoute: () => root, path: "/statistics", component: lazyRouteComponent(part(() => import("./elsewhere/StatisticsPage")), "StatisticsPage") }),
  createRoute({ getParentRoute: () => root, path: "/tokens", component: lazyRouteComponent(part(() => import("./elsewhere/TokensPage")), "TokensPage") }),
] as const;

export const router = createRouter({
  routeTree: root.addChildren(routes),
  parseSearch,
  stringifySearch,
  defaultPreload: false,
});

declare module "@tanstack/react-router" {
  interface Register {
    router: typeof router;
  }
}
