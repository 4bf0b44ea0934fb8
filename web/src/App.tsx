/** Who is here is asked first; then the page that the address names, or how to log in. */
import { QueryClient, QueryClientProvider, useQuery, useQueryClient } from "@tanstack/react-query";
import { RouterProvider } from "@tanstack/react-router";
import { useEffect, useState } from "react";
import { useComingBack } from "./api/connection";
import { onSessionEnd, Problem, setCsrf } from "./api/http";
import { sessionQuery } from "./api/queries";
import { useOtherTabs } from "./api/session";
import { router } from "./pages/router";
import { LoggedOut } from "./shell/LoggedOut";
import { ErrorBoundary } from "./ui/ErrorBoundary";
import { Failure, Loading } from "./ui/parts";

const queries = new QueryClient({
  defaultOptions: {
    queries: {
      staleTime: 2_000,
      refetchOnWindowFocus: false,
      // What was refused stays refused; what nobody answered is asked again.
      retry: (count, error) => count < 5 && error instanceof Problem && error.passes,
      retryDelay: (count) => Math.min(1_000 * 2 ** count, 10_000),
    },
  },
});

export function App() {
  return (
    <ErrorBoundary what="The page">
      <QueryClientProvider client={queries}><Known /></QueryClientProvider>
    </ErrorBoundary>
  );
}

function Known() {
  const [ended, setEnded] = useState(false);
  const { data, error, refetch } = useQuery(sessionQuery);
  const client = useQueryClient();
  useEffect(() => onSessionEnd(() => setEnded(true)), []);
  const look = async () => {
    const { isSuccess } = await refetch();
    if (!isSuccess || !ended) return;
    // What was known belongs to whoever was here before.
    await client.invalidateQueries({ predicate: ({ queryKey }) => queryKey[0] !== sessionQuery.queryKey[0] });
    setEnded(false);
  };
  useComingBack(() => void client.invalidateQueries());
  useOtherTabs(data !== undefined && !ended, () => void look());
  if (data !== undefined) setCsrf(data.csrf);
  if (ended) return <LoggedOut before={data !== undefined} />;
  if (error !== null) return <Failure error={error} retry={() => void refetch()} />;
  if (data === undefined) return <Loading what="tidewheel" />;
  return <RouterProvider router={router} />;
}
