"""Classification providers: each fulfils `node.ads.classifier.Classifier`."""
