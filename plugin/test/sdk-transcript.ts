export const readSessionTranscriptVisibleMessageDelta = async (): Promise<unknown> => ({ kind: "missing" });
