/** Texts with * and ?, as ids on the command line may have them; without either, any part counts, and behind = all of it. */

export function globMatcher(glob: string): (text: string) => boolean {
  const wanted = glob.trim().toLowerCase();
  if (wanted === "") return () => true;
  if (wanted.startsWith("=")) return (text) => text.toLowerCase() === wanted.slice(1);
  if (!/[*?]/.test(wanted)) return (text) => text.toLowerCase().includes(wanted);
  const pattern = wanted.replace(/[.+^${}()|[\]\\]/g, "\\$&").replace(/\*/g, ".*").replace(/\?/g, ".");
  const expression = new RegExp(`^${pattern}$`);
  return (text) => expression.test(text.toLowerCase());
}
