import { expect, it } from "vitest";
import { position } from "../src/components/place";

const view = { width: 1000, height: 700 };
const home = { left: 20, right: 980 };
const box = { width: 400, height: 250 };

it("goes under its anchor", () => {
  expect(position({ left: 300, top: 100, bottom: 130 }, box, home, view)).toEqual({ left: 290, top: 140 });
});

it("goes above it where there is no room below", () => {
  expect(position({ left: 300, top: 600, bottom: 630 }, box, home, view)).toEqual({ left: 290, top: 340 });
});

it("never leaves the window sideways", () => {
  const beyond = { left: 20, right: 1200 };
  expect(position({ left: 950, top: 100, bottom: 130 }, box, beyond, view).left).toBe(592);
  expect(position({ left: 0, top: 100, bottom: 130 }, box, beyond, view).left).toBe(8);
});

it("stays within a widget that is wide enough for it", () => {
  const anchor = { left: 400, top: 100, bottom: 130 };
  expect(position(anchor, box, { left: 20, right: 500 }, view).left).toBe(92);
  expect(position(anchor, box, { left: 20, right: 420 }, view).left).toBe(390);
});

it("stays in the window when its anchor is scrolled out of it", () => {
  expect(position({ left: 300, top: -400, bottom: -370 }, box, home, view).top).toBe(8);
  expect(position({ left: 300, top: 1200, bottom: 1230 }, box, home, view).top).toBe(442);
});

it("is never cut at the top, however small the window is", () => {
  const low = { width: 1000, height: 200 };
  for (const top of [-50, 20, 150, 300])
    expect(position({ left: 300, top, bottom: top + 30 }, box, home, low).top).toBe(8);
});
