"""Interactive machine translation that corrects and memorises (CAMIT)."""
