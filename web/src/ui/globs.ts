/** Texts with * and ?, as ids on the command line may have them; without either, any part counts. */

export function globMatcher(glob: string): (text: string) => boolean {
  const wanted = glob.trim().toLowerCase();
  if (wanted === "") return () => true;
  if (!/[*?]/.test(wanted)) return (text) => text.toLowerCase().includes(wanted);
  const pattern = wanted.replace(/[.+^${}()|[\]\\]/g, "\\$&").replace(/\*/g, ".*").replace(/\?/g, ".");
  const expression = new RegExp(`^${pattern}$`);
  return (text) => expression.test(text.toLowerCase());
}
