// Written by `python -m camit_widget.typescript js/src/protocol.ts` from camit_widget/protocol.py.
// Change it there.

export type Origin = "draft" | "kept" | "changed" | "yours";

export type Status = "waiting" | "draft" | "revised" | "confirmed" | "failed";

export type ExportFormat = "text" | "tsv" | "tmx" | "xliff" | "html";

export type AnyRequest =
  | Hello
  | Go
  | Replace
  | Insert
  | Delete
  | Blank
  | Keep
  | Release
  | Alternatives
  | Complete
  | Undo
  | Redo
  | Cancel
  | Confirm
  | Unconfirm
  | Pin
  | Forget
  | Recall
  | Remember
  | Configure
  | Export;

export type AnyResult = Suggestions | Remembered | Exported | Nothing;

export type AnyAnswer = Done | Failed | Cancelled;

export interface Problem {
  readonly title: string;
  readonly detail: string;
  readonly advice: string;
}

export interface Row {
  readonly source: string;
  readonly text: string;
  readonly status: "waiting" | "draft" | "revised" | "confirmed" | "failed";
  readonly revisions: number;
  readonly seconds: number;
}

export interface Overview {
  readonly model: string;
  readonly source_language: string;
  readonly target_language: string;
  readonly rows: readonly Row[];
}

export interface SourceWord {
  readonly text: string;
  readonly space: boolean;
}

export interface Word {
  readonly text: string;
  readonly space: boolean;
  readonly origin: "draft" | "kept" | "changed" | "yours";
  readonly locked: boolean;
  readonly probability: number;
  readonly theta: number;
  readonly memory: number | null;
  readonly recalled: number;
  readonly like: number | null;
  readonly attention: readonly number[];
}

export interface StageWord {
  readonly text: string;
  readonly space: boolean;
  readonly origin: "draft" | "kept" | "changed" | "yours";
}

export interface Stage {
  readonly name: "draft" | "forward" | "backward" | "result";
  readonly caption: string;
  readonly words: readonly StageWord[];
}

export interface Look {
  readonly word: number;
  readonly entry: number;
  readonly weight: number;
}

export interface Sentence {
  readonly row: number;
  readonly version: number;
  readonly status: "waiting" | "draft" | "revised" | "confirmed" | "failed";
  readonly source: readonly SourceWord[];
  readonly words: readonly Word[];
  readonly can_undo: boolean;
  readonly can_redo: boolean;
  readonly can_unconfirm: boolean;
  readonly stages: readonly Stage[];
  readonly problem: Problem | null;
}

export interface Looks {
  readonly row: number;
  readonly version: number;
  readonly cells: readonly Look[];
}

export interface Entry {
  readonly id: number;
  readonly text: string;
  readonly source: string;
  readonly target: string;
  readonly row: number | null;
  readonly pinned: boolean;
  readonly copies: number;
}

export interface Memory {
  readonly enabled: boolean;
  readonly entries: readonly Entry[];
}

export interface Lesson {
  readonly row: number | null;
  readonly outcome: "learned" | "rejected" | "off";
  readonly before: number;
  readonly after: number;
  readonly guard: number;
  readonly seconds: number;
  readonly reason: string;
}

export interface Learning {
  readonly enabled: boolean;
  readonly lessons: readonly Lesson[];
  readonly studying: number | null;
}

export interface Settings {
  readonly beam: number;
  readonly widest_beam: number;
  readonly stability: number;
  readonly protocol: string;
  readonly protocols: readonly string[];
}

export interface Hello {
  readonly type: "hello";
  readonly view: string;
  readonly id: number;
}

export interface Go {
  readonly type: "go";
  readonly view: string;
  readonly id: number;
  readonly row: number;
}

export interface Effort {
  readonly keystrokes: number;
  readonly mouse: number;
}

export interface Replace {
  readonly type: "replace";
  readonly view: string;
  readonly id: number;
  readonly row: number;
  readonly version: number;
  readonly start: number;
  readonly stop: number;
  readonly text: string;
  readonly effort: Effort;
}

export interface Insert {
  readonly type: "insert";
  readonly view: string;
  readonly id: number;
  readonly row: number;
  readonly version: number;
  readonly at: number;
  readonly text: string;
  readonly effort: Effort;
}

export interface Delete {
  readonly type: "delete";
  readonly view: string;
  readonly id: number;
  readonly row: number;
  readonly version: number;
  readonly start: number;
  readonly stop: number;
  readonly effort: Effort;
}

export interface Blank {
  readonly type: "blank";
  readonly view: string;
  readonly id: number;
  readonly row: number;
  readonly version: number;
  readonly start: number;
  readonly stop: number;
  readonly effort: Effort;
}

export interface Keep {
  readonly type: "keep";
  readonly view: string;
  readonly id: number;
  readonly row: number;
  readonly version: number;
  readonly start: number;
  readonly stop: number;
}

export interface Release {
  readonly type: "release";
  readonly view: string;
  readonly id: number;
  readonly row: number;
  readonly version: number;
  readonly start: number;
  readonly stop: number;
}

export interface Alternatives {
  readonly type: "alternatives";
  readonly view: string;
  readonly id: number;
  readonly row: number;
  readonly version: number;
  readonly start: number;
  readonly stop: number;
}

export interface Complete {
  readonly type: "complete";
  readonly view: string;
  readonly id: number;
  readonly row: number;
  readonly version: number;
  readonly start: number;
  readonly stop: number;
  readonly typed: string;
}

export interface Undo {
  readonly type: "undo";
  readonly view: string;
  readonly id: number;
  readonly row: number;
}

export interface Redo {
  readonly type: "redo";
  readonly view: string;
  readonly id: number;
  readonly row: number;
}

export interface Cancel {
  readonly type: "cancel";
  readonly view: string;
  readonly id: number;
  readonly request: number;
}

export interface Confirm {
  readonly type: "confirm";
  readonly view: string;
  readonly id: number;
  readonly row: number;
  readonly version: number;
}

export interface Unconfirm {
  readonly type: "unconfirm";
  readonly view: string;
  readonly id: number;
}

export interface Pin {
  readonly type: "pin";
  readonly view: string;
  readonly id: number;
  readonly entry: number;
  readonly pinned: boolean;
}

export interface Forget {
  readonly type: "forget";
  readonly view: string;
  readonly id: number;
  readonly entry: number;
}

export interface Recall {
  readonly type: "recall";
  readonly view: string;
  readonly id: number;
  readonly entry: number;
}

export interface Remember {
  readonly type: "remember";
  readonly view: string;
  readonly id: number;
  readonly source: string;
  readonly text: string;
}

export interface Configure {
  readonly type: "configure";
  readonly view: string;
  readonly id: number;
  readonly memory?: boolean | null;
  readonly learning?: boolean | null;
  readonly beam?: number | null;
  readonly stability?: number | null;
  readonly protocol?: string | null;
}

export interface Export {
  readonly type: "export";
  readonly view: string;
  readonly id: number;
  readonly format: "text" | "tsv" | "tmx" | "xliff" | "html";
}

export interface Suggestion {
  readonly text: string;
  readonly probability: number;
  readonly memory: number | null;
}

export interface Suggestions {
  readonly kind: "suggestions";
  readonly items: readonly Suggestion[];
}

export interface Remembered {
  readonly kind: "remembered";
  readonly entry: number;
  readonly new: boolean;
}

export interface Exported {
  readonly kind: "exported";
  readonly filename: string;
  readonly mime: string;
  readonly text: string;
}

export interface Nothing {
  readonly kind: "nothing";
}

export interface Done {
  readonly type: "done";
  readonly view: string;
  readonly id: number;
  readonly result: Suggestions | Remembered | Exported | Nothing;
}

export interface Failed {
  readonly type: "failed";
  readonly view: string;
  readonly id: number;
  readonly problem: Problem;
  readonly outdated?: boolean;
}

export interface Cancelled {
  readonly type: "cancelled";
  readonly view: string;
  readonly id: number;
}
