/** Shows the page that the address names, so that links, the back button and a reload work as usual. */
import { ROOT } from "./api.ts";
import { useEffect, useState } from "./view.ts";

export interface PagePlace {
  /** Segments below the pages' root: `keys/key_123` is `["keys", "key_123"]`. */
  readonly path: readonly string[];
  readonly query: URLSearchParams;
}

const MOVED = "tollgate:moved";

function placeNow(): PagePlace {
  const path = location.pathname.slice(ROOT.length).split("/").filter(Boolean).map(decoded);
  return { path, query: new URLSearchParams(location.search) };
}

/** The address of a page. Segments are encoded here. */
export function hrefOf(segments: readonly string[], query: Readonly<Record<string, string | undefined>> = {}): string {
  const given = Object.entries(query).filter((entry): entry is [string, string] => entry[1] !== undefined);
  const search = new URLSearchParams(given).toString();
  return `${ROOT}/${segments.map(encodeURIComponent).join("/")}${search && `?${search}`}`;
}

/** Whether an address is that of the page that is shown. */
export const isHere = (href: string): boolean => href === `${location.pathname}${location.search}`;

/** Navigates to a page. @param replace leaves no entry in the history */
export function go(href: string, replace = false): void {
  if (replace) history.replaceState(null, "", href);
  else history.pushState(null, "", href);
  dispatchEvent(new Event(MOVED));
}

/**
 * The current place, kept up to date. Clicks on links to these pages are handled here; the browser handles all others.
 */
export function usePlace(): PagePlace {
  const [place, setPlace] = useState(placeNow);
  useEffect(() => {
    const moved = () => setPlace(placeNow());
    const clicked = (event: MouseEvent) => {
      const link = event.target instanceof Element ? event.target.closest("a") : null;
      const isPlain = event.button === 0 && !event.metaKey && !event.ctrlKey && !event.shiftKey && !event.altKey;
      if (!link || !isPlain || event.defaultPrevented || link.target || link.hasAttribute("download")) return;
      if (link.origin !== location.origin || !link.pathname.startsWith(`${ROOT}/`)) return;
      if (link.hash && link.pathname === location.pathname) return;
      event.preventDefault();
      go(link.href);
      scrollTo(0, 0);
      document.querySelector<HTMLElement>("main")?.focus();
    };
    addEventListener("popstate", moved);
    addEventListener(MOVED, moved);
    document.addEventListener("click", clicked);
    return () => {
      removeEventListener("popstate", moved);
      removeEventListener(MOVED, moved);
      document.removeEventListener("click", clicked);
    };
  }, []);
  return place;
}

function decoded(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment;
  }
}
