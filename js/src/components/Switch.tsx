interface Props {
  label: string;
  on: boolean;
  onChange: (on: boolean) => void;
  disabled?: boolean;
}

export function Switch({ label, on, onChange, disabled = false }: Props) {
  return (
    <button
      type="button"
      role="switch"
      class="camit-switch"
      aria-checked={on}
      aria-disabled={disabled}
      onClick={() => !disabled && onChange(!on)}
    >
      {label}
      <span class="camit-switch-track" aria-hidden="true" />
    </button>
  );
}
