export const buildMemorySystemPromptAddition = (): string => "## Memory";
export const delegateCompactionToRuntime = async (): Promise<unknown> => ({ ok: true, compacted: false });
