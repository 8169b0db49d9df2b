export async function measureHold(): Promise<string> {
  return "";
}
