import { Component, type ReactNode } from "react";
import { Action } from "./action";
import { ProblemNote } from "./states";

/** Keeps the navigation if a page fails, such as one whose files a newer program no longer has. */
export class PageBoundary extends Component<{ children: ReactNode }, { error: unknown }> {
  override state = { error: null as unknown };

  static getDerivedStateFromError(error: unknown) {
    return { error };
  }

  override render() {
    if (this.state.error === null) return this.props.children;
    return (
      <div className="stack">
        <ProblemNote error={this.state.error} retry={() => this.setState({ error: null })} />
        <div>
          <Action onPress={() => location.reload()}>Load the console again</Action>
        </div>
      </div>
    );
  }
}
