//! What crosses rooms: emulated boards, the story, the shared cases, the page
