/** Elements and their state: the only importer of preact and htm. */
import htm from "htm";
import { type ComponentChildren, h, render, type VNode } from "preact";
import { useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";

export type { ComponentChildren, VNode };
export { render, useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState };

/** Markup as a tagged template. Inserted values are text, never markup. */
export const html = htm.bind(h) as (strings: TemplateStringsArray, ...values: unknown[]) => VNode;
