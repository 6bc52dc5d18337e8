/** Something to do that is said in a word or two, beside what it belongs to. */
export function Link({ name, onClick }: { name: string; onClick: () => void }) {
  return (
    <button type="button" class="camit-link" onClick={onClick}>
      {name}
    </button>
  );
}
