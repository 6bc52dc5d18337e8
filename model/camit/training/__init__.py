"""Training: corpora, vocabularies, batches, the trainer and the stage that trains the revision memory."""
