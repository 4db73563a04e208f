// The view that is not part of the page's first load: it brings an emulator and a firmware along.

import type { FunctionComponent } from "preact";
import { useEffect, useState } from "preact/hooks";

export function GateLoader() {
  const [View, setView] = useState<FunctionComponent>();
  const [failed, setFailed] = useState(false);
  useEffect(() => {
    import("./view").then(
      ({ GateView }) => setView(() => GateView),
      () => setFailed(true),
    );
  }, []);
  if (View) return <View />;
  return failed ? (
    <p class="strange" role="alert">
      This view did not load. Without a network it opens once it has been open with one; else load the page anew.
    </p>
  ) : (
    <p>Loading the view.</p>
  );
}
