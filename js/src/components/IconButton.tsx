import { Icon, type IconName } from "./Icon";

interface Props {
  icon: IconName;
  label: string;
  onClick: () => void;
  disabled?: boolean;
  pressed?: boolean;
  expanded?: boolean;
  popup?: "menu" | "dialog";
}

/** A button whose only face is an icon, so its name is a label and a tooltip. */
export function IconButton({ icon, label, onClick, disabled = false, pressed, expanded, popup }: Props) {
  return (
    <button
      type="button"
      class="camit-iconbutton"
      aria-label={label}
      title={label}
      aria-disabled={disabled}
      aria-pressed={pressed}
      aria-expanded={expanded}
      aria-haspopup={popup}
      onClick={() => !disabled && onClick()}
    >
      <Icon name={icon} />
    </button>
  );
}
