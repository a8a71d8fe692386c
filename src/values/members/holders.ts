/**
 * Members in which a message, block, item or tool of a conversation holds further objects. A walk through a
 * conversation enters only these: data (inputs of tools, schemas, metadata) is never entered.
 */

/**
 * Where a tool runs, what it is given there, and the image that it paints over. The search for stored data judges these
 * as a whole.
 */
const PLACE_HOLDERS = ["container", "environment", "skills", "input_image_mask"] as const;

/** Members that hold one or more tools. */
export const TOOL_HOLDERS = ["tools", "tool", "definition"] as const;

/** All others: parts, sources, media. */
const PART_HOLDERS = [
  ...["content", "output", "source", "file", "document", "attachments", "tool_changes"],
  ...["image_url", "audio", "input_audio", "audio_url", "video_url", "document_url", "image", "images", "video"],
  "file_data",
] as const;

/** Members that are entered one by one. */
export const ENTERED_HOLDERS = [...PART_HOLDERS, ...TOOL_HOLDERS] as const;

export const HOLDERS: readonly string[] = [...ENTERED_HOLDERS, ...PLACE_HOLDERS];

/** Members of a part whose string, or list of strings, is the address of an image, file or audio, or its data. */
export const ADDRESS_MEMBERS = [
  ...["image_url", "file_url", "file_data", "file_uri", "audio_url", "video_url", "document_url"],
  ...["image", "images", "video", "audio", "input_audio", "input_image", "input_video"],
] as const;
