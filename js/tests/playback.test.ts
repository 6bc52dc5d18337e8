import { signal } from "@preact/signals";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { arriving, Playback } from "../src/playback";
import type { Stage, StageWord } from "../src/protocol";
import { sentence } from "./desk";

function stage(name: Stage["name"], text: string): Stage {
  const words = text.split(" ").map((item): StageWord => ({ text: item, space: true, origin: "kept" }));
  return { name, caption: `about ${name}`, words };
}

const STAGES = [
  stage("draft", "the egons are here"),
  stage("forward", "the filmmakers should help"),
  stage("backward", "all filmmakers should help"),
  stage("result", "all filmmakers should help"),
];

describe("the order in which words were written", () => {
  const orders = (before: number, now: number) =>
    arriving(STAGES[before], STAGES[now] as Stage).map((item) => item.order);

  it("is to the right going forward", () => {
    expect(orders(0, 1)).toEqual([null, 0, 1, 2]);
  });

  it("is to the left going back", () => {
    expect(orders(1, 2)).toEqual([0, null, null, null]);
  });

  it("is none for what is only shown", () => {
    expect(orders(2, 3)).toEqual([null, null, null, null]);
    expect(arriving(undefined, STAGES[0] as Stage).every((item) => item.order === null)).toBe(true);
  });
});

describe("playing", () => {
  let playback: Playback;

  beforeEach(() => {
    vi.useFakeTimers();
    playback = new Playback(signal(sentence("all filmmakers should help", { stages: STAGES })));
  });

  afterEach(() => {
    playback.dispose();
    vi.useRealTimers();
    vi.unstubAllGlobals();
  });

  it("goes through every stage and stops at the last", () => {
    playback.start();
    const seen = [playback.stage.value?.name];
    for (let turn = 0; turn < 3; turn += 1) {
      vi.advanceTimersToNextTimer();
      seen.push(playback.stage.value?.name);
    }
    expect(seen).toEqual(["draft", "forward", "backward", "result"]);
    vi.advanceTimersToNextTimer();
    expect(playback.showing.value).toEqual({ step: 3, playing: false });
  });

  it("waits for the reader who asked for reduced motion", () => {
    vi.stubGlobal("matchMedia", () => ({ matches: true }));
    playback.start();
    vi.advanceTimersByTime(60_000);
    expect(playback.showing.value).toEqual({ step: 0, playing: false });
    playback.step(1);
    expect(playback.stage.value?.caption).toBe("about forward");
  });

  it("can be stepped, paused and started over", () => {
    playback.start();
    playback.step(1);
    expect(playback.showing.value).toEqual({ step: 1, playing: false });
    playback.step(-1);
    playback.step(-1);
    expect(playback.showing.value?.step).toBe(0);
    playback.jump(3);
    playback.toggle();
    expect(playback.showing.value).toEqual({ step: 0, playing: true });
    playback.close();
    vi.advanceTimersByTime(60_000);
    expect(playback.showing.value).toBeNull();
  });

  it("does not start where there is nothing to show", () => {
    const empty = new Playback(signal(sentence("We met")));
    empty.start();
    expect(empty.showing.value).toBeNull();
  });
});
