// Keys of a page, and the dialog that lists them. A key does nothing while the reader types into a field.
import { useEffect, useRef } from "preact/hooks";
import { signal } from "@preact/signals";

export interface Shortcut {
  keys: readonly string[]; // as KeyboardEvent.key says
  shown: string; // "Space"
  does: string; // "play or pause"
  run: () => void;
}

const helpOpen = signal(false);
export function openHelp() {
  helpOpen.value = true;
}

function isTyping(target: EventTarget | null, key: string): boolean {
  if (!(target instanceof HTMLElement)) return false;
  if (target instanceof HTMLInputElement) return target.type !== "checkbox" && (target.type !== "range" || /^(Arrow|Home|End|Page)/.test(key));
  if (target instanceof HTMLSelectElement || target instanceof HTMLTextAreaElement) return true;
  // A focused button takes Space and Enter for itself; a list of tabs takes the arrows.
  if (target.closest("button, [role=tab], summary, a")) return key === " " || key === "Enter" || (target.role === "tab" && key.startsWith("Arrow"));
  return false;
}

export function useShortcuts(shortcuts: readonly Shortcut[]) {
  const latest = useRef(shortcuts);
  latest.current = shortcuts;
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target, event.key)) return;
      if (event.key === "?") {
        helpOpen.value = true;
        return;
      }
      if (helpOpen.value) return;
      const found = latest.current.find((shortcut) => shortcut.keys.includes(event.key));
      if (!found) return;
      event.preventDefault();
      found.run();
    };
    document.addEventListener("keydown", onKey);
    return () => document.removeEventListener("keydown", onKey);
  }, []);
}

export function HelpDialog({ shortcuts }: { shortcuts: readonly Shortcut[] }) {
  const dialog = useRef<HTMLDialogElement>(null);
  const open = helpOpen.value;
  useEffect(() => {
    if (open && !dialog.current?.open) dialog.current?.showModal();
  }, [open]);
  return (
    <dialog ref={dialog} class="help" aria-labelledby="help-title" onClose={() => (helpOpen.value = false)}>
      <h2 id="help-title">Keys</h2>
      <dl>
        {[...shortcuts, { shown: "?", does: "this list" }].map(({ shown, does }) => (
          <div key={shown}>
            <dt>{shown.split(" ").map((key) => <kbd>{key}</kbd>)}</dt>
            <dd>{does}</dd>
          </div>
        ))}
      </dl>
      <form method="dialog"><button>Close</button></form>
    </dialog>
  );
}
