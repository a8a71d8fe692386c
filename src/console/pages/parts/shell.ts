/** The frame of each page: name, menu, language and sign-out. */
import { chooseLanguage, LANGUAGE_NAMES, type Language, languageNow, T } from "../texts/texts.ts";
import { hrefOf } from "./router.ts";
import { type ComponentChildren, html, useLayoutEffect, useRef, useState, type VNode } from "./view.ts";

interface MenuPage {
  /** First segment of the page's path; empty: the first page. */
  readonly at: string;
  readonly title: string;
  /** Whether the segments below it are names or ids of what the page shows. */
  readonly isNamed?: boolean;
}

interface ShellProps {
  readonly pages: readonly MenuPage[];
  /** First segment of the page that is shown. */
  readonly at: string;
  /** The last segment below it, if there is one. */
  readonly name?: string | undefined;
  /** Who has signed in. */
  readonly who: string;
  readonly onSignOut: () => void;
  readonly children?: ComponentChildren;
}

/** Names the tab, before the page that has this title is painted: no page is seen under the title of the one before. */
export function useTitle(title: string): void {
  useLayoutEffect(() => {
    document.title = title;
  }, [title]);
}

export function Shell({ pages, at, name, who, onSignOut, children }: ShellProps): VNode {
  const [isOpen, setOpen] = useState(false);
  const page = pages.find((one) => one.at === at);
  const called = [page?.isNamed ? name : undefined, page?.title ?? T.common.notFound, "Tollgate"];
  // Tells tabs with pages of several accounts or keys apart.
  const title = called.filter(Boolean).join(" · ");
  useTitle(title);
  // Before the page is painted: afterwards it would close a menu that was opened on the new page.
  useLayoutEffect(() => setOpen(false), [title]);
  const burger = useRef<HTMLButtonElement>(null);
  // Closing the menu by keyboard must not leave the focus on an element that is hidden.
  const closeByKey = ({ key }: KeyboardEvent) => {
    if (key !== "Escape" || !isOpen) return;
    setOpen(false);
    burger.current?.focus();
  };
  return html`<div class="shell">
    <a class="skip" href="#main">${T.common.skip}</a>
    <header class="top" onKeyDown=${closeByKey}>
      <a class="brand" href=${hrefOf([])}>Tollgate</a>
      <button ref=${burger} type="button" class="quiet burger" aria-expanded=${isOpen} aria-controls="menu" onClick=${() => setOpen(!isOpen)}>${T.common.menu}</button>
      <nav id="menu" class=${isOpen ? "open" : ""} aria-label=${T.common.menu}>
        <ul>${pages.map(
          (page) =>
            html`<li><a href=${hrefOf(page.at === "" ? [] : [page.at])} aria-current=${page.at === at ? "page" : undefined}>${page.title}</a></li>`,
        )}</ul>
        <div class="who">
          <span>${who}</span>
          <${LanguageChoice} />
          <button type="button" class="quiet" onClick=${onSignOut}>${T.common.signOut}</button>
        </div>
      </nav>
    </header>
    <main id="main" tabindex="-1">${children}</main>
  </div>`;
}

export function LanguageChoice(): VNode {
  const chosen = (event: Event) => chooseLanguage((event.target as HTMLSelectElement).value as Language);
  return html`<select aria-label=${T.common.language} value=${languageNow()} onChange=${chosen}>
    ${Object.entries(LANGUAGE_NAMES).map(([language, name]) => html`<option value=${language}>${name}</option>`)}
  </select>`;
}
