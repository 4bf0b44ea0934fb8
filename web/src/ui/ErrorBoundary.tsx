/** A part of the page that fails says so; the rest goes on. */
import { Component, type ReactNode } from "react";
import { Button } from "./parts";

export class ErrorBoundary extends Component<{ what: string; children: ReactNode }, { error: Error | null }> {
  override state: { error: Error | null } = { error: null };

  static getDerivedStateFromError(error: Error) {
    return { error };
  }

  override render() {
    const { error } = this.state;
    if (error === null) return this.props.children;
    return (
      <div className="failure" role="alert">
        <p>{this.props.what} could not be drawn: {error.message}</p>
        <Button onClick={() => this.setState({ error: null })}>Draw it again</Button>
      </div>
    );
  }
}
