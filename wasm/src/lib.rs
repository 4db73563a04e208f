//! The fencegate core for JavaScript
