/**
 * Members in which a message, block, item or tool of a conversation holds further objects. Whoever goes through a conversation enters these
 * and no others: what is data (inputs of tools, schemas, metadata) is nobody's business here.
 */

/** Where a tool runs, or is given something, and what it paints over: judged as a whole by who looks for what is kept. */
const PLACE_HOLDERS = ["container", "environment", "skills", "input_image_mask"] as const;

/** Those that hold tools, or one. */
export const TOOL_HOLDERS = ["tools", "tool", "definition"] as const;

/** All others: parts, sources, media. */
const PART_HOLDERS = [
  ...["content", "output", "source", "file", "document", "attachments", "tool_changes"],
  ...["image_url", "audio", "input_audio", "audio_url", "video_url", "document_url", "image", "images", "video"],
  "file_data",
] as const;

/** Those that are entered one by one. */
export const ENTERED_HOLDERS = [...PART_HOLDERS, ...TOOL_HOLDERS] as const;

export const HOLDERS: readonly string[] = [...ENTERED_HOLDERS, ...PLACE_HOLDERS];

/** Members of a part that say where an image, a file or a sound is, or are it, where they are a text or a list of texts. */
export const ADDRESS_MEMBERS = [
  ...["image_url", "file_url", "file_data", "file_uri", "audio_url", "video_url", "document_url"],
  ...["image", "images", "video", "audio", "input_audio"],
] as const;
