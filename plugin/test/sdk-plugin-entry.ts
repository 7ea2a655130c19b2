export const definePluginEntry = (entry: unknown): unknown => entry;
