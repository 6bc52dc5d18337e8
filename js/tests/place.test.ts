import { expect, it } from "vitest";
import { position } from "../src/components/place";

const view = { width: 1000, height: 700 };
const box = { width: 400, height: 250 };

it("goes under its anchor", () => {
  expect(position({ left: 300, top: 100, bottom: 130 }, box, view)).toEqual({ left: 290, top: 140 });
});

it("goes above it where there is no room below", () => {
  expect(position({ left: 300, top: 600, bottom: 630 }, box, view)).toEqual({ left: 290, top: 340 });
});

it("never leaves the window sideways", () => {
  expect(position({ left: 950, top: 100, bottom: 130 }, box, view).left).toBe(592);
  expect(position({ left: 0, top: 100, bottom: 130 }, box, view).left).toBe(8);
});
