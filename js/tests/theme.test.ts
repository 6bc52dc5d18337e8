import { afterEach, describe, expect, it } from "vitest";
import { brightness, themeOf } from "../src/theme";

afterEach(() => {
  document.body.removeAttribute("style");
  document.body.replaceChildren();
});

it("reads colours as browsers compute them", () => {
  expect(brightness("rgb(255, 255, 255)")).toBeCloseTo(1);
  expect(brightness("rgb(33, 33, 33)")).toBeLessThan(0.2);
  expect(brightness("color(srgb 0.1 0.1 0.1)")).toBeLessThan(0.2);
  expect(brightness("rgba(0, 0, 0, 0)")).toBeNull();
});

describe("the theme", () => {
  const inside = () => {
    const element = document.createElement("div");
    document.body.append(element);
    return element;
  };

  it("is what the nearest painted ancestor says", () => {
    document.body.style.backgroundColor = "rgb(17, 17, 17)";
    expect(themeOf(inside())).toBe("dark");
    document.body.style.backgroundColor = "rgb(250, 250, 250)";
    expect(themeOf(inside())).toBe("light");
  });

  it("is light on a page that paints nothing", () => {
    expect(themeOf(inside())).toBe("light");
  });
});
